#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// How many programs run along each axis. A count of 0 is a launch that does nothing.
using Grid = std::array<std::int64_t, 3>;

/// What a kernel is launched on: a number, or memory with its size.
struct Argument {
  Type type = {};  // a scalar, a pointer, or a view whose extents and strides are all known
  Literal literal = {};
  std::byte* data = nullptr;
  std::int64_t bytes = 0;  // that may be touched from `data` on

  static Argument number(DType dtype, double value);
  static Argument integer(DType dtype, std::int64_t value);
  static Argument pointer(DType dtype, void* data, std::int64_t bytes);
  /// Without gaps, or with strides in elements; `bytes` follow from the extents.
  static Argument view(DType dtype, void* data, Extents shape);
  static Argument view(DType dtype, void* data, Extents shape, Extents strides);
};

/// Whether the arguments are what the kernel's parameters ask for: kinds, dtypes, extents and
/// strides that the type states, memory that is there and aligned, a grid of counts from 0 to 2^31.
Expected<Done> check_arguments(const Kernel& kernel, std::span<const Argument> arguments,
                               const Grid& grid);

/// The arguments as 64-bit words, in the order of the parameters, as compiled kernels read them: a
/// number or a pointer is one; a view is its address, its extents and its strides.
std::vector<std::uint64_t> words_of(std::span<const Argument> arguments);
/// Where the words of each parameter begin; at the end, how many there are.
std::vector<int> word_positions(const Kernel& kernel);

}  // namespace tessera::tile
