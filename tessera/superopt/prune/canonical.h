#pragma once

#include <string>

#include "tessera/rules/rule.h"

namespace tessera::superopt {

/// The rule with what its sides and its guard ask of sizes put into the types of its inputs: sizes
/// that have to agree go by one name. What cannot be solved stays in the guard. A rule with `*s`
/// stays as it is. That its sizes contradict each other is a diagnostic.
Expected<rules::Rule> resolved(const rules::Rule& rule);

/// A text that two rules share only if they are the same up to what inputs, sizes and attributes
/// are called, the order of operands that commute, of outputs and of conditions, and which side is
/// the source. Few that are the same in this sense have different texts.
std::string canonical(const rules::Rule& rule);

}  // namespace tessera::superopt
