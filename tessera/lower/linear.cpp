#include "tessera/lower/linear.h"

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

/// into += x * times; false if that leaves 64 bits.
bool accumulate(std::int64_t& into, std::int64_t x, std::int64_t times) {
  std::int64_t product = 0;
  return !__builtin_mul_overflow(x, times, &product) &&
         !__builtin_add_overflow(into, product, &into);
}

template <class Terms>
bool accumulate(Terms& into, const Terms& terms, std::int64_t times) {
  for (const auto& [term, factor] : terms) {
    std::int64_t& sum = into[term];
    if (!accumulate(sum, factor, times)) return false;
    if (sum == 0) into.erase(term);
  }
  return true;
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

std::optional<Linear> plus(const Linear& a, const Linear& b, std::int64_t times) {
  Linear sum = a;
  if (!accumulate(sum.base, b.base, times) || !accumulate(sum.scalars, b.scalars, times) ||
      !accumulate(sum.axes, b.axes, times))
    return std::nullopt;
  return sum;
}

}  // namespace tessera::lower
