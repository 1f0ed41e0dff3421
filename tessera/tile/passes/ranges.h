#pragma once

#include "tessera/tile/passes/facts.h"

namespace tessera::tile {

// NOLINTNEXTLINE(google-runtime-int): sums and products of 64-bit numbers have no other name
__extension__ using Wide = __int128;

/// The numbers from low to high, where those are known.
struct Range {
  std::optional<std::int64_t> low = {}, high = {};
  bool operator==(const Range&) const = default;
};

/// What the dtype alone says. 64 bits say nothing but that u64 is not negative: sums of 64-bit
/// integers are taken not to wrap.
Range range_of(DType dtype);
inline Range range_of(const Facts& facts) {
  return {facts.low, facts.high};
}

/// The numbers that integers of these ranges can give, before they wrap.
Range add(const Range& a, const Range& b);
Range negate(const Range& a);
Range multiply(const Range& a, const Range& b);
/// Of numbers that are in one or the other.
Range join(const Range& a, const Range& b);
/// Of numbers that are in both.
Range meet(const Range& a, const Range& b);
/// Towards zero, by a positive number.
Range divide(const Range& a, std::int64_t by);

/// Whether all numbers of the range are numbers of the dtype: what has this range does not wrap.
bool fits(const Range& range, DType dtype);

}  // namespace tessera::tile
