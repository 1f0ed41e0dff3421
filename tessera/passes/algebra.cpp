#include "tessera/passes/algebra.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/rules/apply.h"
#include "tessera/rules/shipped.h"

namespace tessera::passes {
namespace {

/// Whether all outputs come from one node: a rule that joins several places has to see all of the
/// graph, which is not made yet.
bool has_one_root(const rules::Rule& rule) {
  const GraphNode* root = rule.source.producer(rule.source.outputs()[0]);
  return std::ranges::all_of(rule.source.outputs(), [&](ValueId id) {
    return rule.source.producer(id) == root && root != nullptr;
  });
}

Expected<std::vector<rules::Rule>> helpful_rules(bool exact) {
  TESSERA_TRY(std::vector<rules::Rule> rules, rules::shipped_by_hand());
  std::erase_if(rules, [&](const rules::Rule& rule) {
    return !rule.helps || !has_one_root(rule) ||
           (exact && rule.numerics.kind != rules::Numerics::Kind::Exact);
  });
  return rules;
}

Expected<rules::RuleSet> helpful_set(bool exact) {
  TESSERA_TRY(std::vector<rules::Rule> rules, helpful_rules(exact));
  std::vector<rules::Rule> chosen;
  for (rules::Rule& rule : rules) {
    rule.both_ways = false;  // it helps in the direction in which it is written
    for (rules::Rule& instance : rules::instances(rule)) chosen.push_back(std::move(instance));
  }
  return rules::RuleSet(chosen);
}

/// Parsed once: the rules are part of the binary.
const Expected<rules::RuleSet>& rule_set(bool exact) {
  if (exact) {
    static const Expected<rules::RuleSet> kept = helpful_set(true);
    return kept;
  }
  static const Expected<rules::RuleSet> all = helpful_set(false);
  return all;
}

}  // namespace

Expected<std::set<std::string>> normalization_rules(bool exact) {
  TESSERA_TRY(const std::vector<rules::Rule> rules, helpful_rules(exact));
  std::set<std::string> names;
  for (const rules::Rule& rule : rules) names.insert(rule.name);
  return names;
}

Expected<Rewriter::Rewrite> rule_rewrite(bool exact, Changes& changes) {
  const Expected<rules::RuleSet>& rules = rule_set(exact);
  if (!rules) return rules.error();
  return Rewriter::Rewrite(
      [&rules = *rules, &changes](Rewriter& out,
                                  std::size_t index) -> std::optional<Rewriter::Results> {
        const GraphNode node = out.made().nodes()[index];
        for (const auto& pattern : rules.rooted_at(*node.op)) {
          for (const rules::Match& match :
               rules::matches_at(out.made(), out.made().nodes()[index], pattern, out)) {
            const auto target = rules::target_of(out.made(), match);
            if (!target) continue;
            const rules::Rule& rule = match.rule();
            Rewriter::Results inputs;
            for (const ValueId id : rule.source.inputs()) inputs.push_back(match.values[id.index]);
            auto outputs = out.emit(*target, inputs);
            if (!outputs) continue;
            // The rule may speak of some of the node's results, in any order.
            const auto results = out.made().outputs(out.made().nodes()[index]);
            Rewriter::Results all(results.size());
            for (std::size_t i = 0; i < outputs->size(); ++i) {
              const ValueId replaced = match.values[rule.source.outputs()[i].index];
              const auto at = std::ranges::find(results, replaced) - results.begin();
              all[static_cast<std::size_t>(at)] = (*outputs)[i];
            }
            if (!std::ranges::all_of(all, &ValueId::present)) continue;
            changes.emplace_back(rule.name, out.where());
            return all;
          }
        }
        return std::nullopt;
      });
}

}  // namespace tessera::passes
