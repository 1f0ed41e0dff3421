#include "tessera/lower/range.h"

#include <algorithm>
#include <limits>

namespace tessera::lower {
namespace {

using Wide = __int128;

std::int64_t saturated(Wide value) {
  constexpr auto kLow = std::numeric_limits<std::int64_t>::min();
  constexpr auto kHigh = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp(value, Wide{kLow}, Wide{kHigh}));
}

}  // namespace

Range Range::all() {
  return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
}
Range operator+(const Range& a, const Range& b) {
  return {saturated(Wide{a.low} + b.low), saturated(Wide{a.high} + b.high)};
}
Range operator-(const Range& a, const Range& b) {
  return {saturated(Wide{a.low} - b.high), saturated(Wide{a.high} - b.low)};
}
Range operator*(const Range& a, const Range& b) {
  const auto ends = {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low,
                     Wide{a.high} * b.high};
  return {saturated(std::min(ends)), saturated(std::max(ends))};
}
Range hull(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

}  // namespace tessera::lower
