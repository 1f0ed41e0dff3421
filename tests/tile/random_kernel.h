#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera::testing {

/// The buffers that a kernel is launched on, one for each parameter that is memory.
using Memory = std::vector<std::vector<std::byte>>;

/// A valid kernel with what it takes to launch it.
struct RandomKernel {
  tile::Kernel kernel = {};
  tile::Grid grid = {1, 1, 1};
  Memory memory = {};
  std::vector<tile::Argument> on_nothing = {};          // memory arguments without their data
  std::vector<std::optional<std::size_t>> buffer = {};  // of each parameter, in `memory`

  /// The arguments, on this copy of the memory.
  std::vector<tile::Argument> arguments(Memory& on) const;
};

struct RandomKernelOptions {
  int steps = 24;                     // operations to draw, more or less
  std::int64_t most_elements = 1024;  // of a tile
  /// Only what every backend computes alike, bit for bit (but for the bits of a NaN and the sign of
  /// a zero): no exp and its like, sums and dots of floats that are small integers alone.
  bool exact = true;
  bool control = true;  // loops and branches
  bool half = true;     // f16 and bf16
};

/// The same kernel for the same seed. Programs store to places of their own; what they add to
/// memory that they share is of integers.
RandomKernel random_kernel(std::uint64_t seed, const RandomKernelOptions& options = {});

/// Calls `f` with the kernels of seeds first … first + count - 1; a failure in it names the seed
/// and shows the kernel.
void for_each_random_kernel(std::uint64_t first, int count, const RandomKernelOptions& options,
                            const std::function<void(const RandomKernel&)>& f);

/// The first element in which two memories differ, in words; empty where they agree. Integers are
/// equal, floats within the tolerance (relative to the larger of 1 and the magnitude), NaN is NaN.
std::string difference(const RandomKernel& kernel, const Memory& expected, const Memory& found,
                       double tolerance = 0);

}  // namespace tessera::testing
