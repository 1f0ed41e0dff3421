#pragma once

#include "tessera/rules/rule.h"
#include "tessera/superopt/generate/candidates.h"

namespace tessera::superopt {

/// Generality of a rule's input sizes.
enum class Form {
  General,   // all sizes that the declaration leaves open are symbolic
  Declared,  // sizes that are numbers in the declaration stay numbers
  AnyRank,   // all inputs but scalars have one shape of any rank
};

/// Candidate as a rule over symbolic sizes, without a guard; nothing where it has no such form, or
/// both sides are the same graph.
std::optional<rules::Rule> as_rule(const Terms& terms, const Candidate& candidate, Form form);

}  // namespace tessera::superopt
