#pragma once

#include <optional>

#include "tessera/rules/rule.h"

/// Trivial rules and common context of a rule's two sides.
namespace tessera::superopt {

/// Whether the two sides are equal by congruence alone: up to the order of commuting operands and
/// equivalent attributes.
bool is_trivial(const rules::Rule& rule);

/// Generalizes a rule by removing common context: f(a) = f(b) without f, and an input for a common
/// subterm. The result implies the rule, if it is true. Nothing where the sides have nothing in
/// common.
std::optional<rules::Rule> without_common(const rules::Rule& rule);

}  // namespace tessera::superopt
