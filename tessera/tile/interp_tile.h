#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tessera/tile/interp_value.h"
#include "tessera/tile/kernel.h"

/// Tile operations of the interpreter, on elements in row-major order.
namespace tessera::tile::interp {

/// Elementwise operations.
void map(Function function, DType dtype, std::span<const std::byte* const> in, std::int64_t count,
         std::byte* out);
void select(std::int64_t width, const Truth* condition, const std::byte* yes, const std::byte* no,
            std::int64_t count, std::byte* out);
void cast(DType from, DType to, const std::byte* x, std::int64_t count, std::byte* out);
void fill(DType dtype, const Literal& literal, std::int64_t count, std::byte* out);
void iota(DType dtype, std::int64_t count, std::byte* out);

/// Decomposition of a shape around an axis: product of the extents before it, its extent, and
/// product of those after it.
struct Along {
  std::int64_t outer = 1, extent = 1, inner = 1;
  Along(const Extents& shape, std::int64_t axis);
};

/// Reduction and scan. Float sums and products are computed in double, sums with compensation, and
/// rounded once: the result is nearer to the exact one than that of any order of additions.
void reduce(Function function, DType dtype, const Along& along, const std::byte* x, std::byte* out);
void scan(Function function, DType dtype, const Along& along, bool reverse, const std::byte* x,
          std::byte* out);

/// Gathers x at the indices along the axis of `from`; returns the first index out of range, if
/// there is one.
std::optional<std::int64_t> gather(std::int64_t width, const Along& from, const std::byte* x,
                                   const Along& to, const std::int64_t* index, std::byte* out);

/// Extents and element types of a matrix multiplication a·b + c. Floats are summed in double and
/// rounded once, integers wrap in the type of c.
struct DotSizes {
  std::int64_t m = 0, n = 0, k = 0;
};
struct DotTypes {
  DType a, b, c;
};
void dot(const DotTypes& types, const DotSizes& sizes, std::array<const std::byte*, 3> in,
         std::byte* out);

/// A strided access pattern: position of the first element, and the stride along each axis.
/// Positions wrap.
struct Lattice {
  std::int64_t first = 0;
  Extents strides = {};
};

/// Calls visit(position in a, position in b) for the start of every row along the last axis of a
/// box, until it returns false. A box of rank 0 is one row.
template <class Visit>
void for_each_row(const Extents& shape, const Lattice& a, const Lattice& b, const Visit& visit) {
  for (const std::int64_t extent : shape)
    if (extent <= 0) return;
  const std::size_t axes = shape.empty() ? 0 : shape.size() - 1;
  Extents at(axes, 0);
  std::int64_t here = a.first, there = b.first;
  const auto step = [&](std::size_t axis, std::int64_t count) {
    here = moved(here, count, a.strides[axis]);
    there = moved(there, count, b.strides[axis]);
  };
  while (visit(here, there)) {
    std::size_t axis = axes;
    for (; axis > 0; --axis) {
      if (++at[axis - 1] < shape[axis - 1]) break;
      step(axis - 1, 1 - shape[axis - 1]);
      at[axis - 1] = 0;
    }
    if (axis == 0) return;
    step(axis - 1, 1);
  }
}

/// Strides of a contiguous row-major tile.
Extents dense(const Extents& shape);
/// Copies a box of elements of `width` bytes between strided patterns.
void move(std::int64_t width, const Extents& shape, const std::byte* from, const Lattice& source,
          std::byte* to, const Lattice& target);

}  // namespace tessera::tile::interp
