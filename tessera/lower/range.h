#pragma once

#include <cstdint>

namespace tessera::lower {

/// The integers from low to high; the ends saturate.
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

}  // namespace tessera::lower
