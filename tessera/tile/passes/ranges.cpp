#include "tessera/tile/passes/ranges.h"

#include <algorithm>
#include <limits>

namespace tessera::tile {
namespace {

using Bound = std::optional<std::int64_t>;

/// None where it does not fit, which is to say: not known.
Bound narrow(Wide x) {
  if (x < std::numeric_limits<std::int64_t>::min() || x > std::numeric_limits<std::int64_t>::max())
    return {};
  return static_cast<std::int64_t>(x);
}

Bound sum(const Bound& a, const Bound& b) {
  return a && b ? narrow(Wide{*a} + *b) : Bound{};
}

}  // namespace

Range range_of(DType dtype) {
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

Range add(const Range& a, const Range& b) {
  return {sum(a.low, b.low), sum(a.high, b.high)};
}

Range negate(const Range& a) {
  const auto minus = [](const Bound& x) { return x ? narrow(-Wide{*x}) : Bound{}; };
  return {minus(a.high), minus(a.low)};
}

Range multiply(const Range& a, const Range& b) {
  if (a.low && a.high && b.low && b.high) {
    const Wide corners[] = {Wide{*a.low} * *b.low, Wide{*a.low} * *b.high, Wide{*a.high} * *b.low,
                            Wide{*a.high} * *b.high};
    return {narrow(*std::min_element(std::begin(corners), std::end(corners))),
            narrow(*std::max_element(std::begin(corners), std::end(corners)))};
  }
  // Open above, and not negative: the least product is that of the least factors.
  if (a.low && b.low && *a.low >= 0 && *b.low >= 0) return {narrow(Wide{*a.low} * *b.low), {}};
  return {};
}

Range join(const Range& a, const Range& b) {
  return {a.low && b.low ? Bound(std::min(*a.low, *b.low)) : Bound{},
          a.high && b.high ? Bound(std::max(*a.high, *b.high)) : Bound{}};
}

Range meet(const Range& a, const Range& b) {
  return {a.low && b.low ? Bound(std::max(*a.low, *b.low))
          : a.low        ? a.low
                         : b.low,
          a.high && b.high ? Bound(std::min(*a.high, *b.high))
          : a.high         ? a.high
                           : b.high};
}

Range divide(const Range& a, std::int64_t by) {
  return {a.low ? Bound(*a.low / by) : Bound{}, a.high ? Bound(*a.high / by) : Bound{}};
}

bool fits(const Range& range, DType dtype) {
  const Range all = range_of(dtype);
  return (!all.low || (range.low && *range.low >= *all.low)) &&
         (!all.high || (range.high && *range.high <= *all.high));
}

}  // namespace tessera::tile
