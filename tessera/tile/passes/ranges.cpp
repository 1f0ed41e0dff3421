#include "tessera/tile/passes/ranges.h"

#include <algorithm>
#include <limits>

namespace tessera::tile {
namespace {

using OptionalBound = std::optional<std::int64_t>;

/// None where it does not fit, that is, unknown.
OptionalBound narrow(Wide x) {
  if (x < std::numeric_limits<std::int64_t>::min() || x > std::numeric_limits<std::int64_t>::max())
    return {};
  return static_cast<std::int64_t>(x);
}

OptionalBound sum(const OptionalBound& a, const OptionalBound& b) {
  return a && b ? narrow(Wide{*a} + *b) : OptionalBound{};
}

}  // namespace

Interval range_of(DType dtype) {
  const int bits = 8 * byte_width(dtype);
  switch (dtype) {
    case DType::Bool: return {0, 1};
    case DType::U64: return {0, {}};
    case DType::I8:
    case DType::I16:
    case DType::I32: {
      const std::int64_t half = std::int64_t{1} << (bits - 1);
      return {-half, half - 1};
    }
    case DType::U8:
    case DType::U16:
    case DType::U32: return {0, (std::int64_t{1} << bits) - 1};
    default: return {};
  }
}

Interval add(const Interval& a, const Interval& b) {
  return {sum(a.low, b.low), sum(a.high, b.high)};
}

Interval negate(const Interval& a) {
  const auto minus = [](const OptionalBound& x) { return x ? narrow(-Wide{*x}) : OptionalBound{}; };
  return {minus(a.high), minus(a.low)};
}

Interval multiply(const Interval& a, const Interval& b) {
  if (a.low && a.high && b.low && b.high) {
    const Wide corners[] = {Wide{*a.low} * *b.low, Wide{*a.low} * *b.high, Wide{*a.high} * *b.low,
                            Wide{*a.high} * *b.high};
    return {narrow(*std::min_element(std::begin(corners), std::end(corners))),
            narrow(*std::max_element(std::begin(corners), std::end(corners)))};
  }
  // Unbounded above, and not negative: the least product is that of the least factors.
  if (a.low && b.low && *a.low >= 0 && *b.low >= 0) return {narrow(Wide{*a.low} * *b.low), {}};
  return {};
}

Interval join(const Interval& a, const Interval& b) {
  return {a.low && b.low ? OptionalBound(std::min(*a.low, *b.low)) : OptionalBound{},
          a.high && b.high ? OptionalBound(std::max(*a.high, *b.high)) : OptionalBound{}};
}

Interval meet(const Interval& a, const Interval& b) {
  return {a.low && b.low ? OptionalBound(std::max(*a.low, *b.low))
          : a.low        ? a.low
                         : b.low,
          a.high && b.high ? OptionalBound(std::min(*a.high, *b.high))
          : a.high         ? a.high
                           : b.high};
}

Interval divide(const Interval& a, std::int64_t by) {
  return {a.low ? OptionalBound(*a.low / by) : OptionalBound{},
          a.high ? OptionalBound(*a.high / by) : OptionalBound{}};
}

bool fits(const Interval& range, DType dtype) {
  const Interval all = range_of(dtype);
  return (!all.low || (range.low && *range.low >= *all.low)) &&
         (!all.high || (range.high && *range.high <= *all.high));
}

}  // namespace tessera::tile
