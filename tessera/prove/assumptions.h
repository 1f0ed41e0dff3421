#pragma once

#include "tessera/prove/claim.h"
#include "tessera/prove/verdict.h"

namespace tessera::prove {

/// What a proof of the claim over the reals and the integers takes for granted of the machine's
/// arithmetic and of the domains of functions. Nothing for values that are only moved. Divisors
/// and arguments of roots and logarithms that can be seen to be positive ask for nothing.
std::vector<Assumption> arithmetic_assumptions(const GraphClaim& claim);

}  // namespace tessera::prove
