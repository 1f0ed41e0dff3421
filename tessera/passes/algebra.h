#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Options of rule_rewrite.
struct RuleOptions {
  bool exact = false;                   // only rules that preserve every bit
  std::set<std::string> disabled = {};  // names of rules that are skipped
};

/// Rewrite by the shipped normalization rules, which are beneficial on every machine.
Expected<Rewriter::Rewrite> rule_rewrite(const RuleOptions& options, Changes& changes);

/// Names of these rules.
Expected<std::set<std::string>> normalization_rules(bool exact);

}  // namespace tessera::passes
