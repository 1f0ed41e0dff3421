#pragma once

#include <string>

#include "tessera/rules/rule.h"

namespace tessera::superopt {

/// Normalizes a rule: conditions on sizes from its sides and its guard are solved into the types of
/// its inputs, so that equal sizes share a symbol. Conditions that cannot be solved stay in the
/// guard. A rule with `*s` is not changed. Contradictory sizes are a diagnostic.
Expected<rules::Rule> resolved(const rules::Rule& rule);

/// Canonical text of a rule: equal texts mean that two rules are the same up to the names of
/// inputs, sizes and attributes, the order of commuting operands, outputs and conditions, and the
/// direction. A few rules that are the same in this sense have different texts.
std::string canonical(const rules::Rule& rule);

}  // namespace tessera::superopt
