#include "tessera/rules/match.h"

#include <algorithm>
#include <set>

#include "tessera/ir/constants.h"
#include "tessera/rules/graph_view.h"
#include "tessera/rules/occurrence.h"

namespace tessera::rules {
namespace {

constexpr std::size_t kMostPerPlace = 64;  // of matches of one rule

std::vector<ValueInfo> known_values(const Graph& graph) {
  std::vector<ValueInfo> all(graph.value_count());
  for (std::uint32_t i = 0; i < graph.value_count(); ++i) {
    const Tensor* constant = graph.constant(ValueId{i});
    all[i] =
        constant != nullptr ? constant_info(*constant) : ValueInfo{.type = graph.type(ValueId{i})};
  }
  return all;
}

/// A graph that stays as it is.
class WholeGraph final : public Surroundings {
 public:
  explicit WholeGraph(const Graph& graph)
      : known_(known_values(graph)),
        is_constant_(constant_values(graph)),
        users_(graph.value_count()),
        is_output_(graph.value_count()) {
    for (const GraphNode& node : graph.nodes())
      for (const ValueId id : graph.inputs(node))
        if (id.present()) users_[id.index].push_back(&node);
    for (const ValueId id : graph.outputs()) is_output_[id.index] = true;
  }

  const ValueInfo& known(ValueId value) const override { return known_[value.index]; }
  bool is_constant(ValueId value) const override { return is_constant_[value.index]; }
  bool is_used_within(ValueId value, const std::set<const GraphNode*>& nodes) const override {
    return !is_output_[value.index] &&
           std::ranges::all_of(users_[value.index],
                               [&](const GraphNode* user) { return nodes.contains(user); });
  }

 private:
  std::vector<ValueInfo> known_;
  std::vector<bool> is_constant_;
  std::vector<std::vector<const GraphNode*>> users_;
  std::vector<bool> is_output_;
};

bool has_numbers(const Type& type) {
  return type.shape && std::ranges::all_of(
                           *type.shape, [](const Dim& dim) { return dim.constant().has_value(); });
}

/// The matches of a rule at one place: occurrences that nothing else needs.
class Matcher {
 public:
  Matcher(const Graph& graph, const Surroundings& surroundings,
          std::shared_ptr<const Pattern> pattern)
      : view_(graph, surroundings),
        graph_(graph),
        pattern_(std::move(pattern)),
        source_(pattern_->rule.source) {}

  std::vector<Match> at(const GraphNode& node) {
    const std::size_t output = pattern_->steps[0].output;
    if (output < graph_.outputs(node).size())
      for_each_occurrence(*pattern_, view_, graph_.outputs(node)[output],
                          [&](const Occurrence<GraphView>& occurrence) {
                            take(occurrence);
                            return found_.size() < kMostPerPlace;
                          });
    return std::move(found_);
  }

 private:
  void take(const Occurrence<GraphView>& occurrence) {
    if (std::ranges::find(found_, occurrence.values, &Match::values) != found_.end()) return;
    const std::optional<Fit> fit = fit_of(*pattern_, view_, occurrence);
    if (!fit || !is_closed(occurrence)) return;
    for (const ValueId id : pattern_->untold)
      if (!has_numbers(fit->binding().type(source_.type(id)))) return;
    found_.push_back({pattern_, occurrence.values, fit->binding()});
  }

  /// Whether the nodes can be removed: what they compute is used by no other, and what the match
  /// needs is computed without it.
  bool is_closed(const Occurrence<GraphView>& occurrence) const {
    std::set<const GraphNode*> nodes(occurrence.nodes.begin(), occurrence.nodes.end());
    nodes.erase(nullptr);
    std::set<ValueId> replaced;
    for (const ValueId id : source_.outputs()) replaced.insert(occurrence.values[id.index]);
    for (const GraphNode* node : nodes)
      for (const ValueId id : graph_.outputs(*node)) {
        if (replaced.contains(id)) continue;
        if (!view_.surroundings.is_used_within(id, nodes)) return false;
      }
    std::vector<ValueId> inputs;
    for (const ValueId id : source_.inputs())
      if (const ValueId value = occurrence.values[id.index]; value.present())
        inputs.push_back(value);
    return std::ranges::none_of(inputs,
                                [&](ValueId id) {
                                  return graph_.producer(id) != nullptr &&
                                         nodes.contains(graph_.producer(id));
                                }) &&
           !depends(inputs, replaced);
  }

  /// Whether one of the values is computed from one of the others, which takes several outputs.
  bool depends(std::vector<ValueId> values, const std::set<ValueId>& others) const {
    if (source_.outputs().size() == 1) return false;
    const std::uint32_t first = others.begin()->index;  // values are numbered as they are made
    std::set<ValueId> seen;
    while (!values.empty()) {
      const ValueId value = values.back();
      values.pop_back();
      if (others.contains(value)) return true;
      const GraphNode* node = graph_.producer(value);
      if (node == nullptr || value.index < first || !seen.insert(value).second) continue;
      for (const ValueId id : graph_.inputs(*node))
        if (id.present()) values.push_back(id);
    }
    return false;
  }

  GraphView view_;
  const Graph& graph_;
  std::shared_ptr<const Pattern> pattern_;
  const Graph& source_;
  std::vector<Match> found_;
};

/// Adds the nodes behind a value to the steps of a search, results before operands.
void plan(ValueId value, std::vector<bool>& planned, Pattern& pattern) {
  const Graph& source = pattern.rule.source;
  const GraphNode* node = value.present() ? source.producer(value) : nullptr;
  if (node == nullptr) return;
  const auto index = static_cast<std::size_t>(node - source.nodes().data());
  if (planned[index]) return;
  planned[index] = true;
  const auto results = source.outputs(*node);
  pattern.steps.push_back(
      {.node = index,
       .at = value,
       .output = static_cast<std::size_t>(std::ranges::find(results, value) - results.begin())});
  for (const ValueId operand : source.inputs(*node)) plan(operand, planned, pattern);
}

void plan(Pattern& pattern) {
  std::vector<bool> planned(pattern.rule.source.nodes().size());
  for (const ValueId output : pattern.rule.source.outputs()) {
    const std::size_t before = pattern.steps.size();
    plan(output, planned, pattern);
    if (before != 0 && before != pattern.steps.size()) pattern.steps[before].anywhere = true;
  }
}

}  // namespace

Pattern pattern_of(const Rule& rule) {
  Pattern pattern{.rule = rule, .generic = is_generic(rule)};
  const Graph& source = pattern.rule.source;
  pattern.known = known_values(source);
  std::ranges::set_difference(used_inputs(rule.target), used_inputs(source),
                              std::back_inserter(pattern.untold));
  for (const GraphNode& node : source.nodes()) {
    if (node.op->kind() == OpDef::Kind::Control) continue;
    std::vector<ValueInfo> inputs;
    for (const ValueId id : source.inputs(node))
      inputs.push_back(id.present() ? pattern.known[id.index] : ValueInfo{.present = false});
    if (auto inferred = infer(*node.op, *node.attrs, inputs))
      for (std::size_t i = 0; i < source.outputs(node).size() && i < inferred->size(); ++i)
        pattern.known[source.outputs(node)[i].index].value = (*inferred)[i].value;
  }
  pattern.constants.resize(source.value_count());
  for (const ValueId id : source.inputs())
    pattern.constants[id.index] =
        std::ranges::find(rule.constants, source.name(id)) != rule.constants.end();
  plan(pattern);
  return pattern;
}

RuleSet::RuleSet(const std::vector<Rule>& rules) {
  for (const Rule& rule : rules) {
    add(rule);
    if (rule.both_ways) {
      Rule other = reversed(rule);
      if (check(other)) add(other);
    }
  }
}

void RuleSet::add(const Rule& rule) {
  const GraphNode* root = rule.source.producer(rule.source.outputs()[0]);
  if (root == nullptr) return;
  by_root_[root->op].push_back(std::make_shared<const Pattern>(pattern_of(rule)));
  ++size_;
}

const RuleSet::Patterns& RuleSet::rooted_at(const OpDef& op) const {
  static const Patterns kNone;
  const auto it = by_root_.find(&op);
  return it == by_root_.end() ? kNone : it->second;
}

std::vector<Match> matches_at(const Graph& graph, const GraphNode& node,
                              const std::shared_ptr<const Pattern>& pattern,
                              const Surroundings& surroundings) {
  return Matcher(graph, surroundings, pattern).at(node);
}

std::vector<Match> matches(const Graph& graph, const RuleSet& rules) {
  const WholeGraph whole(graph);
  std::vector<Match> all;
  for (const GraphNode& node : graph.nodes())
    for (const auto& pattern : rules.rooted_at(*node.op))
      for (Match& match : matches_at(graph, node, pattern, whole)) all.push_back(std::move(match));
  return all;
}

}  // namespace tessera::rules
