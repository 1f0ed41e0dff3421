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

/// Removes operators whose constant operand is neutral: x + 0, x * 1, where(true, x, y). Composites
/// bring such operands when they are expanded: a mask of attention that masks nothing, a scale
/// of 1.
///
/// Needs:  core operators; constants as they will be at run time.
/// Keeps:  the meaning; every bit where `options` say so.
/// Leaves: no operator that a projection rule replaces because of a constant.
Expected<Graph> without_neutral_operands(const Graph& graph, RuleOptions options, Changes& changes);

/// Names of these rules.
Expected<std::set<std::string>> normalization_rules(bool exact);

}  // namespace tessera::passes
