#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Number of programs along each axis of a launch. A count of 0 is a launch that does nothing.
using Grid = std::array<std::int64_t, 3>;

/// A launch argument of a kernel: a number, or memory with its size.
struct Argument {
  Type type = {};  // a scalar, a pointer, or a view whose extents and strides are all known
  Literal literal = {};
  std::byte* data = nullptr;
  std::int64_t bytes = 0;  // accessible from `data` on

  static Argument number(DType dtype, double value);
  static Argument integer(DType dtype, std::int64_t value);
  static Argument pointer(DType dtype, void* data, std::int64_t bytes);
  /// Argument that is a view: contiguous, or with strides in elements; `bytes` follows from the
  /// extents.
  static Argument view(DType dtype, void* data, Extents shape);
  static Argument view(DType dtype, void* data, Extents shape, Extents strides);
};

/// Checks launch arguments against the kernel's parameters: kinds, dtypes, static extents and
/// strides, memory that is present and aligned, a grid of counts from 0 to 2^31.
Expected<Done> check_arguments(const Kernel& kernel, std::span<const Argument> arguments,
                               const Grid& grid);

/// Flattens arguments to 64-bit words, in the order of the parameters, as compiled kernels read
/// them: one word for a number or a pointer; address, extents and strides for a view.
std::vector<std::uint64_t> words_of(std::span<const Argument> arguments);
/// Index of the first word of each parameter; at the end, the number of words.
std::vector<int> word_positions(const Kernel& kernel);

}  // namespace tessera::tile
