#pragma once

#include "tessera/rules/rule.h"
#include "tessera/superopt/generate/candidates.h"

namespace tessera::superopt {

/// How much of the sizes of inputs a rule leaves open.
enum class Form {
  General,   // all that their declaration does
  Declared,  // sizes that are numbers stay
  AnyRank,   // all inputs that are not scalars are of one shape, of any rank
};

/// A candidate as a rule over symbolic sizes, without a guard; nothing where it cannot be stated
/// so, or both sides are the same graph.
std::optional<rules::Rule> as_rule(const Terms& terms, const Candidate& candidate, Form form);

}  // namespace tessera::superopt
