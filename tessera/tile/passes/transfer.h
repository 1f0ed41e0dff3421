#pragma once

#include "tessera/tile/passes/facts.h"
#include "tessera/tile/passes/ranges.h"

namespace tessera::tile {

// While facts are computed, 0 is the divisor of values that are zero everywhere: gcd(0, x) = x.

/// Facts that follow from the type alone.
Facts unknown(const Type& type);
/// Facts that hold for both of two values of this type (the join of the lattice).
Facts join(const Facts& a, const Facts& b, const Type& type);
/// Transfer function: facts of the result of an operation with one result and no regions, given the
/// facts of its operands.
Facts transfer(const Kernel& kernel, const std::vector<Facts>& facts, const Operation& op);

}  // namespace tessera::tile
