#pragma once

#include "tessera/tile/passes/facts.h"

namespace tessera::tile {

/// Intermediate type of interval arithmetic on 64-bit integers.
// NOLINTNEXTLINE(google-runtime-int): 128 bits have no other name
__extension__ using Wide = __int128;

/// Integer interval; an end that is not known is none.
struct Interval {
  std::optional<std::int64_t> low = {}, high = {};
  bool operator==(const Interval&) const = default;
};

/// Range of a dtype. 64-bit types are unbounded, but for u64 >= 0: arithmetic of 64-bit integers is
/// assumed not to wrap.
Interval range_of(DType dtype);
inline Interval range_of(const Facts& facts) {
  return {facts.low, facts.high};
}

/// Interval arithmetic over mathematical integers, before wrapping.
Interval add(const Interval& a, const Interval& b);
Interval negate(const Interval& a);
Interval multiply(const Interval& a, const Interval& b);
/// Union: smallest interval that contains both.
Interval join(const Interval& a, const Interval& b);
/// Intersection.
Interval meet(const Interval& a, const Interval& b);
/// Quotient, rounded towards zero, by a positive number.
Interval divide(const Interval& a, std::int64_t by);

/// Whether the range lies within the dtype, so that values of it do not wrap.
bool fits(const Interval& range, DType dtype);

}  // namespace tessera::tile
