#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::runtime {

/// A kernel as machine code: runs programs `first` up to `last` of a grid, in order. `launch` is
/// the three words of the grid, then those of the arguments. A result that is not 0 says which of
/// its assertions does not hold.
using KernelEntry = int (*)(const void* launch, std::int64_t first, std::int64_t last,
                            std::byte* scratch);
inline constexpr std::size_t kGridWords = 3;

/// Kernels that need more scratch are a mistake: it is the least that every thread would take.
inline constexpr std::int64_t kMostScratch = std::int64_t{1} << 31;

/// One launch of a kernel, ready to be made.
struct KernelCall {
  KernelEntry entry = nullptr;
  const std::uint64_t* launch = nullptr;
  std::int64_t programs = 0;  // of the grid
  std::int64_t scratch_bytes = 0;
  double work = 0;  // of all programs: about how many elements are computed
};

/// Runs all programs on up to `threads` threads of the process (0: one per core); little work stays
/// on the calling thread. Throws std::bad_alloc before it begins if there is no memory for scratch.
int run_kernel(const KernelCall& call, int threads);

}  // namespace tessera::runtime
