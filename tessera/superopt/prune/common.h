#pragma once

#include <optional>

#include "tessera/rules/rule.h"

namespace tessera::superopt {

/// Whether the two sides compute the same by congruence alone: operands that commute in another
/// order, attributes that mean the same.
bool is_trivial(const rules::Rule& rule);

/// The rule without what both sides have in common: f(a) = f(b) without f, and with an input for
/// what both compute. It says more, if it is true. Nothing where they have nothing in common.
std::optional<rules::Rule> without_common(const rules::Rule& rule);

}  // namespace tessera::superopt
