#pragma once

#include "tessera/tile/passes/facts.h"

namespace tessera::tile {

// NOLINTNEXTLINE(google-runtime-int): sums and products of 64-bit numbers have no other name
__extension__ using Wide = __int128;

/// The numbers from low to high, where those are known.
struct Interval {
  std::optional<std::int64_t> low = {}, high = {};
  bool operator==(const Interval&) const = default;
};

/// What the dtype alone says. 64 bits say nothing but that u64 is not negative: sums of 64-bit
/// integers are taken not to wrap.
Interval range_of(DType dtype);
inline Interval range_of(const Facts& facts) {
  return {facts.low, facts.high};
}

/// The numbers that integers of these ranges can give, before they wrap.
Interval add(const Interval& a, const Interval& b);
Interval negate(const Interval& a);
Interval multiply(const Interval& a, const Interval& b);
/// Of numbers that are in one or the other.
Interval join(const Interval& a, const Interval& b);
/// Of numbers that are in both.
Interval meet(const Interval& a, const Interval& b);
/// Towards zero, by a positive number.
Interval divide(const Interval& a, std::int64_t by);

/// Whether all numbers of the range are numbers of the dtype: what has this range does not wrap.
bool fits(const Interval& range, DType dtype);

}  // namespace tessera::tile
