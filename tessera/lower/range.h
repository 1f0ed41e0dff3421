#pragma once

#include <algorithm>
#include <cstdint>

namespace tessera::lower {

/// Interval of integers, both ends inclusive; arithmetic saturates.
struct Range {
  std::int64_t low = 0, high = 0;

  static Range all();
  bool within(std::int64_t extent) const { return low >= 0 && high < extent; }
};

Range operator+(const Range& a, const Range& b);
Range operator-(const Range& a, const Range& b);
Range operator*(const Range& a, const Range& b);
Range hull(const Range& a, const Range& b);

/// a / b rounded up, for non-negative numbers.
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
/// Largest divisor of the extent that is at most `most`; at least 1.
inline std::int64_t largest_divisor(std::int64_t extent, std::int64_t most) {
  std::int64_t divisor = std::clamp<std::int64_t>(most, 1, extent);
  while (extent % divisor != 0) --divisor;
  return divisor;
}

}  // namespace tessera::lower
