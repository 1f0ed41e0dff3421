#include "tessera/search/neighbours.h"

#include <algorithm>

#include "tessera/passes/algebra.h"
#include "tessera/passes/cse.h"
#include "tessera/passes/data_movement.h"
#include "tessera/passes/fold.h"
#include "tessera/rules/apply.h"

namespace tessera::search {
namespace {

using rules::Rule;

/// Appends the operators that compute an output, as a word; inputs are anonymous.
void spell(const Graph& graph, ValueId id, std::vector<const void*>& words) {
  const GraphNode* node = id.present() ? graph.producer(id) : nullptr;
  words.push_back(node == nullptr ? nullptr : static_cast<const void*>(node->op));
  if (node == nullptr) return;
  words.push_back(node->attrs);
  for (const ValueId input : graph.inputs(*node)) spell(graph, input, words);
}

/// Whether a rule merges similar values: then the order in which they are merged is not a choice.
bool joins_alike(const Rule& rule) {
  const auto outputs = rule.source.outputs();
  if (outputs.size() < 2) return false;
  std::vector<const void*> first;
  spell(rule.source, outputs[0], first);
  return std::ranges::all_of(outputs.subspan(1), [&](ValueId id) {
    std::vector<const void*> words;
    spell(rule.source, id, words);
    return words == first && rule.source.producer(id) != rule.source.producer(outputs[0]);
  });
}

/// Rule set of one pattern, in its direction.
rules::RuleSet alone(const rules::Pattern& pattern) {
  Rule rule = pattern.rule;
  rule.both_ways = false;
  return rules::RuleSet({rule});
}

bool is_in_order(const rules::Match& match) {
  const auto outputs = match.rule().source.outputs();
  return std::ranges::is_sorted(outputs, {}, [&](ValueId id) { return match.values[id.index]; });
}

std::string place_of(const Graph& graph, const rules::Match& match) {
  const ValueId first = match.values[match.rule().source.outputs()[0].index];
  const GraphNode* node = graph.producer(first);
  if (graph.is_named(first) || node == nullptr) return graph.name(first);
  const std::string& name = graph.node_name(static_cast<std::size_t>(node - graph.nodes().data()));
  return name.empty() ? graph.name(first) : name;
}

/// Operands of the node that computes a named value.
std::set<ValueId> operands_of(const Graph& graph, const std::string& name) {
  for (const GraphNode& node : graph.nodes())
    for (const ValueId output : graph.outputs(node))
      if (graph.is_named(output) && graph.name(output) == name) {
        const auto inputs = graph.inputs(node);
        return {inputs.begin(), inputs.end()};
      }
  return {};
}

}  // namespace

Expected<RewriteMoves> RewriteMoves::make(const std::vector<Rule>& rules, bool exact) {
  TESSERA_TRY(const std::set<std::string> always, passes::normalization_rules(exact));
  const bool has_mutants =
      std::ranges::any_of(rules, [](const Rule& rule) { return rule.mutant.has_value(); });
  std::vector<Rule> used, chosen, exposing;
  for (const Rule& rule : rules) {
    const bool exposes = rule.helps == rules::Helps::WithMutant;
    if (exposes && !has_mutants) continue;
    used.push_back(rule);
    if (always.contains(rule.name)) continue;
    if (exact && rule.numerics.kind != rules::Numerics::Kind::Exact) continue;
    for (Rule& instance : rules::instances(rule))
      (exposes ? exposing : chosen).push_back(std::move(instance));
  }
  return RewriteMoves(used, chosen, exposing, exact);
}

Expected<Graph> RewriteMoves::normalized(const Graph& graph,
                                         std::vector<std::string>& applied) const {
  constexpr int kMostRounds = 3;
  // Limits of constant folding: scalars are folded, weights are not, since they are large and one
  // region stands for others with different weights.
  constexpr passes::FoldLimits kNumbers{.most_bytes = 1024, .most_numbers = 16};
  Graph current = graph;
  for (int round = 0; round < kMostRounds; ++round) {
    passes::Changes by_rules, rest;
    TESSERA_TRY(passes::Rewriter::Rewrite helpful,
                passes::rule_rewrite({.exact = exact_}, by_rules));
    TESSERA_TRY(current, passes::Rewriter(current, {passes::fold_rewrite(kNumbers, rest),
                                                    passes::data_movement_rewrite(rest),
                                                    passes::cse_rewrite(rest), std::move(helpful)})
                             .run());
    for (const passes::Change& change : by_rules) applied.push_back(change.what);
    if (by_rules.empty()) break;
  }
  return current;
}

void RewriteMoves::from(const Graph& graph, const std::set<std::string>& first,
                        const std::function<bool(Neighbour)>& visit) const {
  const auto show = [&](const Graph& made, RuleApplication by) {
    auto normal_form = normalized(made, by.also);
    return !normal_form || visit({*std::move(normal_form), std::move(by)});
  };
  const rules::Pattern* joined = nullptr;  // the last that joined all that it could
  std::vector<rules::Match> matches = rules::matches(graph, set_);
  std::ranges::stable_partition(
      matches, [&](const rules::Match& match) { return first.contains(match.rule().name); });
  for (const rules::Match& match : matches) {
    const bool joins = joins_alike(match.rule());
    if (joins && !is_in_order(match)) continue;
    auto made = rules::apply(graph, match);
    if (!made) continue;  // its target does not fit these types
    RuleApplication by{.rule = match.rule().name, .where = place_of(graph, match)};
    if (!show(*made, by)) return;
    if (!joins || joined == match.pattern.get()) continue;
    joined = match.pattern.get();
    const rules::RuleSet rule = alone(*match.pattern);
    constexpr int kMost = 32;
    for (bool goes_on = true; goes_on && by.times < kMost;) {
      const std::vector<rules::Match> more = rules::matches(*made, rule);
      const auto next = std::ranges::find_if(more, is_in_order);
      auto again = next == more.end() ? Expected<Graph>(*made) : rules::apply(*made, *next);
      goes_on = next != more.end() && again;
      if (goes_on) made = std::move(again), ++by.times;
    }
    if (by.times > 1 && !show(*made, by)) return;
  }
  from_exposed(graph, visit);
}

void RewriteMoves::from_exposed(const Graph& graph,
                                const std::function<bool(Neighbour)>& visit) const {
  if (exposing_.size() == 0) return;
  for (const rules::Match& outer : rules::matches(graph, exposing_)) {
    const ValueId replaced = outer.values[outer.rule().source.outputs()[0].index];
    if (!graph.is_named(replaced)) continue;
    const auto exposed = rules::apply(graph, outer);
    if (!exposed) continue;
    const std::set<ValueId> operands = operands_of(*exposed, graph.name(replaced));
    for (const rules::Match& match : rules::matches(*exposed, set_)) {
      // Other matches are there without the first rule.
      const Graph& source = match.rule().source;
      if (std::ranges::none_of(source.nodes(), [&](const GraphNode& node) {
            return operands.contains(match.values[source.outputs(node)[0].index]);
          }))
        continue;
      auto made = rules::apply(*exposed, match);
      if (!made) continue;
      RuleApplication by{
          .rule = match.rule().name, .where = place_of(graph, outer), .also = {outer.rule().name}};
      auto normal_form = normalized(*made, by.also);
      if (normal_form && !visit({*std::move(normal_form), std::move(by)})) return;
    }
  }
}

std::vector<Neighbour> RewriteMoves::from(const Graph& graph) const {
  std::vector<Neighbour> all;
  from(graph, {}, [&](Neighbour neighbour) {
    all.push_back(std::move(neighbour));
    return true;
  });
  return all;
}

}  // namespace tessera::search
