#pragma once

#include <compare>
#include <cstdint>

#include "tessera/expr/affine.h"
#include "tessera/tile/kernel.h"

namespace tessera::lower {

/// Variable of a position: a scalar of the kernel, or the index along an axis of the tile.
struct PositionVariable {
  enum class Kind : std::uint8_t { Scalar, Axis };
  Kind kind = Kind::Scalar;
  std::uint32_t index = 0;  // the value of a scalar, the number of an axis

  bool is_axis() const { return kind == Kind::Axis; }
  auto operator<=>(const PositionVariable&) const = default;
};

/// Index at every position of a tile, as an affine form of scalars and of the indices of axes.
using Position = Affine<PositionVariable>;

inline Position scalar_position(tile::ValueId scalar) {
  return Position::of({PositionVariable::Kind::Scalar, scalar});
}
inline Position axis_position(int axis) {
  return Position::of({PositionVariable::Kind::Axis, static_cast<std::uint32_t>(axis)});
}

}  // namespace tessera::lower
