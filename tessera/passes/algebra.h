#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Rewrite by the shipped normalization rules, which are beneficial on every machine. With `exact`,
/// only by those that preserve every bit.
Expected<Rewriter::Rewrite> rule_rewrite(bool exact, Changes& changes);

/// Names of these rules.
Expected<std::set<std::string>> normalization_rules(bool exact);

}  // namespace tessera::passes
