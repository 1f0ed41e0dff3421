#include "tessera/passes/algebra.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/passes/fold.h"
#include "tessera/passes/step_functions.h"
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
    return rule.helps == rules::Helps::Unknown || rule.helps == rules::Helps::WithMutant ||
           !has_one_root(rule) || (exact && rule.numerics.kind != rules::Numerics::Kind::Exact);
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

/// Whether the target of a rule is one of its inputs.
bool is_projection(const std::shared_ptr<const rules::Pattern>& pattern) {
  return pattern->rule.target.nodes().empty();
}

/// Number of elements of a tensor; sizes that are symbols count as 2, like any that is not 1.
double sizes_product(const Type& type) {
  double count = 1;
  for (const Dim& dim : *type.shape)
    count *= static_cast<double>(
        dim.substituted([](std::string_view) { return Dim(2); }).constant().value_or(2));
  return count;
}

/// Whether the target of a match computes fewer elements at run time than its source.
bool is_smaller(const Rewriter& out, const rules::Match& match, const Graph& target) {
  const Graph& source = match.rule().source;
  double saved = 0;
  for (const GraphNode& node : source.nodes())
    for (const ValueId id : source.outputs(node))
      if (const ValueId value = match.values[id.index]; value.present() && !out.is_constant(value))
        saved += sizes_product(out.made().type(value));
  std::set<ValueId> variable;
  for (std::size_t i = 0; i < target.inputs().size(); ++i)
    if (const ValueId value = match.values[source.inputs()[i].index];
        !value.present() || !out.is_constant(value))
      variable.insert(target.inputs()[i]);
  for (const GraphNode& node : target.nodes()) {
    if (std::ranges::none_of(target.inputs(node),
                             [&](ValueId id) { return variable.contains(id); }))
      continue;
    for (const ValueId id : target.outputs(node)) {
      variable.insert(id);
      saved -= sizes_product(target.type(id));
    }
  }
  return saved > 0;
}

/// Whether the node that is rewritten keeps its rounding, because a step function follows.
class SensitiveNodes {
 public:
  bool operator()(const Rewriter& out) {
    if (nodes_.empty()) nodes_ = nodes_before_steps(out.from());
    return nodes_[out.origin()];
  }

 private:
  std::vector<bool> nodes_;  // of the old graph; empty before it is asked for
};

}  // namespace

Expected<std::set<std::string>> normalization_rules(bool exact) {
  TESSERA_TRY(const std::vector<rules::Rule> rules, helpful_rules(exact));
  std::set<std::string> names;
  for (const rules::Rule& rule : rules) names.insert(rule.name);
  return names;
}

Expected<Rewriter::Rewrite> rule_rewrite(const RuleOptions& options, Changes& changes) {
  const Expected<rules::RuleSet>& rules = rule_set(options.exact);
  if (!rules) return rules.error();
  return Rewriter::Rewrite(
      [&rules = *rules, &changes, options, is_sensitive = SensitiveNodes()](
          Rewriter& out, std::size_t index) mutable -> std::optional<Rewriter::Results> {
        const GraphNode node = out.made().nodes()[index];
        for (const auto& pattern : rules.rooted_at(*node.op)) {
          if (options.disabled.contains(pattern->rule.name)) continue;
          if (options.projections && !is_projection(pattern)) continue;
          for (const rules::Match& match :
               rules::matches_at(out.made(), out.made().nodes()[index], pattern, out)) {
            const auto target = rules::target_of(out.made(), match);
            if (!target) continue;
            const rules::Rule& rule = match.rule();
            if (rule.numerics.kind != rules::Numerics::Kind::Exact && is_sensitive(out)) continue;
            if (rule.helps == rules::Helps::WhereSmaller && !is_smaller(out, match, *target))
              continue;
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

Expected<bool> may_have_neutral_operands(const Graph& graph, bool exact) {
  const Expected<rules::RuleSet>& rules = rule_set(exact);
  if (!rules) return rules.error();
  return std::ranges::any_of(graph.nodes(), [&](const GraphNode& node) {
    return std::ranges::any_of(rules->rooted_at(*node.op), is_projection) &&
           std::ranges::any_of(graph.inputs(node), [&](ValueId input) {
             const Tensor* constant = input.present() ? graph.constant(input) : nullptr;
             return constant != nullptr && is_uniform(*constant);
           });
  });
}

}  // namespace tessera::passes
