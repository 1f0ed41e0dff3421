#pragma once

#include "tessera/tile/passes/facts.h"
#include "tessera/tile/passes/ranges.h"

namespace tessera::tile {

// While facts are computed, 0 is the divisor of what is zero everywhere: gcd(0, x) = x.

/// What the type alone says.
Facts unknown(const Type& type);
/// What holds of values that are one or the other, both of this type.
Facts join(const Facts& a, const Facts& b, const Type& type);
/// What is known of the result of an operation that has one and no regions, by what is known of its
/// operands.
Facts transfer(const Kernel& kernel, const std::vector<Facts>& facts, const Operation& op);

}  // namespace tessera::tile
