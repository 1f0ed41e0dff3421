#pragma once

#include "tessera/prove/claim.h"
#include "tessera/prove/verdict.h"

namespace tessera::prove {

/// The assumptions under which a proof of the claim over the reals and the integers holds of
/// machine arithmetic. None for values that are only moved; none of kind Domain where divisors and
/// arguments of roots and logarithms can be seen to be positive, none of kind Indices where indices
/// are constants that fit.
std::vector<Assumption> arithmetic_assumptions(const GraphClaim& claim);

/// What a node asks of its operands, where they are no constants: that integers are not divided by
/// zero, that indices fit. It is part of a proof even where the result is not looked at.
std::optional<Assumption::Kind> asked_of_operands(const Graph& graph, const GraphNode& node);

/// The assumption of a kind that has one text.
Assumption assumption_of(Assumption::Kind kind);

}  // namespace tessera::prove
