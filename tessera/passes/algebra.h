#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Options of rule_rewrite.
struct RuleOptions {
  bool exact = false;                   // only rules that preserve every bit
  bool projections = false;             // only rules whose target is an input: x + 0 = x
  std::set<std::string> disabled = {};  // names of rules that are skipped
};

/// Rewrite by the shipped normalization rules, which are beneficial on every machine.
Expected<Rewriter::Rewrite> rule_rewrite(const RuleOptions& options, Changes& changes);

/// Whether a constant of a graph may make an operator neutral (x + 0, x * 1, where(true, x, y)) by
/// a projection rule. Composites bring such operands when they are expanded: a mask of attention
/// that masks nothing, a scale of 1.
Expected<bool> may_have_neutral_operands(const Graph& graph, bool exact);

/// Names of these rules.
Expected<std::set<std::string>> normalization_rules(bool exact);

}  // namespace tessera::passes
