#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "tessera/tile/kernel.h"

namespace tessera::lower {

/// Where an integer lies; the ends saturate.
struct Range {
  std::int64_t low = 0, high = 0;

  static Range all();
  bool within(std::int64_t extent) const { return low >= 0 && high < extent; }
};

Range operator+(const Range& a, const Range& b);
Range operator-(const Range& a, const Range& b);
Range operator*(const Range& a, const Range& b);
Range hull(const Range& a, const Range& b);

/// a / b rounded up, of numbers that are not negative.
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// base + sum of factor * scalar + sum of factor * position along an axis of the tile.
struct Linear {
  std::int64_t base = 0;
  std::map<tile::ValueId, std::int64_t> scalars = {};
  std::map<int, std::int64_t> axes = {};

  bool operator==(const Linear&) const = default;
  bool is_constant() const { return scalars.empty() && axes.empty(); }
  static Linear constant(std::int64_t value) { return {.base = value}; }
  static Linear scalar(tile::ValueId id) { return {.scalars = {{id, 1}}}; }
  static Linear axis(int axis) { return {.axes = {{axis, 1}}}; }
};

/// Nothing where a number leaves 64 bits.
std::optional<Linear> plus(const Linear& a, const Linear& b, std::int64_t times = 1);

}  // namespace tessera::lower
