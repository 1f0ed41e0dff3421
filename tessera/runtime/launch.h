#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::runtime {

/// Entry point of a compiled CPU kernel: runs the programs [first, last) of a grid, in order.
/// `launch` is the three words of the grid, then those of the arguments. A result other than 0
/// identifies a failed assertion.
using KernelEntry = int (*)(const void* launch, std::int64_t first, std::int64_t last,
                            std::byte* scratch);
inline constexpr std::size_t kGridWords = 3;

/// Limit of scratch memory per thread; kernels that need more are rejected.
inline constexpr std::int64_t kMostScratch = std::int64_t{1} << 31;

/// A prepared launch of a CPU kernel.
struct KernelCall {
  KernelEntry entry = nullptr;
  const std::uint64_t* launch = nullptr;
  std::int64_t programs = 0;  // of the grid
  std::int64_t scratch_bytes = 0;
  double work = 0;  // cost estimate of all programs: about how many elements are computed
};

/// Runs all programs on up to `threads` threads of the process (0: one per core); little work stays
/// on the calling thread. Throws std::bad_alloc before it begins if scratch cannot be allocated.
int run_kernel(const KernelCall& call, int threads);

}  // namespace tessera::runtime
