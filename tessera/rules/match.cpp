#include "tessera/rules/match.h"

#include <algorithm>
#include <set>

#include "tessera/ir/constants.h"
#include "tessera/rules/fit.h"
#include "tessera/rules/meaning.h"

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

template <class KnownOf>
std::vector<ValueInfo> of_inputs(std::span<const ValueId> ids, const KnownOf& known_of) {
  std::vector<ValueInfo> known;
  for (const ValueId id : ids)
    known.push_back(id.present() ? known_of(id) : ValueInfo{.present = false});
  return known;
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

/// What a partial match has found out.
struct State {
  std::vector<ValueId> values;  // by value of the source
  Fit fit;
};

bool has_numbers(const Type& type) {
  return type.shape && std::ranges::all_of(
                           *type.shape, [](const Dim& dim) { return dim.constant().has_value(); });
}

class Matcher {
 public:
  Matcher(const Graph& graph, const Surroundings& surroundings,
          std::shared_ptr<const Pattern> pattern)
      : graph_(graph),
        surroundings_(surroundings),
        pattern_(std::move(pattern)),
        source_(pattern_->rule.source) {}

  std::vector<Match> at(const GraphNode& node) {
    State state{.values = std::vector<ValueId>(source_.value_count()), .fit = Fit(*pattern_)};
    const ValueId root = source_.outputs()[0];
    const auto results = source_.outputs(*source_.producer(root));
    const auto index = static_cast<std::size_t>(std::ranges::find(results, root) - results.begin());
    if (index < graph_.outputs(node).size())
      solve(std::move(state), {{root, graph_.outputs(node)[index]}});
    return std::move(found_);
  }

 private:
  struct Goal {
    ValueId pattern, value;
  };

  void solve(State state, std::vector<Goal> goals) {
    while (!goals.empty()) {
      if (found_.size() >= kMostPerPlace) return;
      const Goal goal = goals.back();
      goals.pop_back();
      if (!goal.pattern.present() || !goal.value.present()) {
        if (goal.pattern.present() != goal.value.present()) return;
        continue;
      }
      ValueId& bound = state.values[goal.pattern.index];
      if (bound.present()) {
        if (bound != goal.value) return;
        continue;
      }
      if (!state.fit.take_type(source_.type(goal.pattern), graph_.type(goal.value))) return;
      const GraphNode* node = source_.producer(goal.pattern);
      if (node != nullptr && is_sizes(state, goal)) continue;
      bound = goal.value;
      if (const Tensor* constant = source_.constant(goal.pattern)) {
        const Tensor* found = graph_.constant(goal.value);
        if (found == nullptr || !state.fit.is_constant(*constant, *found)) return;
      } else if (node == nullptr) {
        if (!fits_input(goal)) return;
      } else {
        const auto operands = descend(state, *node, goal);
        if (!operands) return;
        std::vector<Goal> ordered = goals;
        ordered.insert(ordered.end(), operands->rbegin(), operands->rend());
        if (!pattern_->commutes[node_index(*node)]) {
          goals = std::move(ordered);
          continue;
        }
        solve(state, std::move(ordered));
        goals.push_back({(*operands)[1].pattern, (*operands)[0].value});
        goals.push_back({(*operands)[0].pattern, (*operands)[1].value});
      }
    }
    next_output(std::move(state));
  }

  std::size_t node_index(const GraphNode& node) const {
    return static_cast<std::size_t>(&node - source_.nodes().data());
  }

  /// Outputs that are not reached from those before are looked for among all nodes.
  void next_output(State state) {
    const auto outputs = source_.outputs();
    const auto open = std::ranges::find_if(
        outputs, [&](ValueId id) { return !state.values[id.index].present(); });
    if (open == outputs.end()) return finish(std::move(state));
    const GraphNode* wanted = source_.producer(*open);
    if (wanted == nullptr) return;
    const auto results = source_.outputs(*wanted);
    const auto index =
        static_cast<std::size_t>(std::ranges::find(results, *open) - results.begin());
    for (const GraphNode& node : graph_.nodes()) {
      const auto made = graph_.outputs(node);
      if (node.op != wanted->op || index >= made.size()) continue;
      if (std::ranges::find(state.values, made[index]) != state.values.end()) continue;
      solve(state, {{*open, made[index]}});
    }
  }

  /// The node behind a value, if it is the one that is looked for; what its operands have to be.
  std::optional<std::vector<Goal>> descend(State& state, const GraphNode& wanted,
                                           const Goal& goal) {
    const GraphNode* node = graph_.producer(goal.value);
    if (node == nullptr || node->op != wanted.op || !graph_.subgraphs(*node).empty()) return {};
    const auto made = graph_.outputs(*node), results = source_.outputs(wanted);
    const auto inputs = graph_.inputs(*node), operands = source_.inputs(wanted);
    if (made.size() != results.size() || inputs.size() != operands.size()) return {};
    for (std::size_t i = 0; i < made.size(); ++i) {
      ValueId& bound = state.values[results[i].index];
      if (bound.present() && bound != made[i]) return {};
      if ((results[i] == goal.pattern) != (made[i] == goal.value)) return {};
      bound = made[i];
    }
    const auto known = [&](ValueId id) { return surroundings_.known(id); };
    if (!state.fit.take_attrs(wanted, *node->attrs, of_inputs(inputs, known))) return {};
    std::vector<Goal> goals;
    for (std::size_t i = 0; i < inputs.size(); ++i) goals.push_back({operands[i], inputs[i]});
    return goals;
  }

  bool fits_input(const Goal& goal) const {
    const std::vector<std::string>& constants = pattern_->rule.constants;
    return surroundings_.is_constant(goal.value) ||
           std::ranges::find(constants, source_.name(goal.pattern)) == constants.end();
  }

  /// Sizes that the source computes may be numbers in the graph.
  bool is_sizes(State& state, const Goal& goal) const {
    const std::optional<std::vector<Dim>>& wanted = pattern_->known[goal.pattern.index].value;
    const Tensor* constant = graph_.constant(goal.value);
    return wanted && constant != nullptr && state.fit.take_sizes(*wanted, *constant);
  }

  /// The nodes of the graph that the match would remove.
  std::set<const GraphNode*> matched_nodes(const State& state) const {
    std::set<const GraphNode*> nodes;
    for (std::uint32_t i = 0; i < source_.value_count(); ++i)
      if (source_.producer(ValueId{i}) != nullptr && state.values[i].present())
        nodes.insert(graph_.producer(state.values[i]));
    return nodes;
  }

  bool is_closed(const State& state) const {
    const std::set<const GraphNode*> nodes = matched_nodes(state);
    std::set<ValueId> replaced;
    for (const ValueId id : source_.outputs()) replaced.insert(state.values[id.index]);
    for (const GraphNode* node : nodes)
      for (const ValueId id : graph_.outputs(*node)) {
        if (replaced.contains(id)) continue;
        if (!surroundings_.is_used_within(id, nodes)) return false;
      }
    std::vector<ValueId> inputs;
    for (const ValueId id : source_.inputs())
      if (const ValueId value = state.values[id.index]; value.present()) inputs.push_back(value);
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

  void finish(State state) {
    const auto found_type = [&](ValueId id) {
      const ValueId value = state.values[id.index];
      return value.present() ? &graph_.type(value) : nullptr;
    };
    if (!state.fit.complete(found_type) || !is_closed(state)) return;
    for (const ValueId id : pattern_->untold)
      if (!has_numbers(state.fit.binding().type(source_.type(id)))) return;
    if (std::ranges::find(found_, state.values, &Match::values) != found_.end()) return;
    found_.push_back({pattern_, std::move(state.values), state.fit.binding()});
  }

  const Graph& graph_;
  const Surroundings& surroundings_;
  std::shared_ptr<const Pattern> pattern_;
  const Graph& source_;
  std::vector<Match> found_;
};

/// Whether the operands of a node could be those of the pattern's root, told by the operators that
/// compute them: what most patterns fail by, without any work.
bool may_match(const Graph& graph, const GraphNode& node, const Pattern& pattern) {
  const Graph& source = pattern.rule.source;
  const GraphNode& root = *source.producer(source.outputs()[0]);
  const auto inputs = graph.inputs(node), operands = source.inputs(root);
  if (inputs.size() != operands.size()) return false;
  const auto fits = [&](ValueId wanted, ValueId found) {
    if (!wanted.present() || !found.present()) return wanted.present() == found.present();
    if (source.constant(wanted) != nullptr) return graph.constant(found) != nullptr;
    const GraphNode* by = source.producer(wanted);
    if (by == nullptr) return true;
    if (graph.constant(found) != nullptr) return pattern.known[wanted.index].value.has_value();
    const GraphNode* made_by = graph.producer(found);
    return made_by != nullptr && made_by->op == by->op;
  };
  bool straight = true;
  for (std::size_t i = 0; i < inputs.size(); ++i) straight &= fits(operands[i], inputs[i]);
  if (straight) return true;
  const auto index = static_cast<std::size_t>(&root - source.nodes().data());
  return pattern.commutes[index] && fits(operands[0], inputs[1]) && fits(operands[1], inputs[0]);
}

}  // namespace

Pattern pattern_of(const Rule& rule) {
  Pattern pattern{.rule = rule, .generic = is_generic(rule)};
  const Graph& source = pattern.rule.source;
  pattern.known = known_values(source);
  std::ranges::set_difference(used_inputs(rule.target), used_inputs(source),
                              std::back_inserter(pattern.untold));
  for (const GraphNode& node : source.nodes()) {
    const std::vector<ValueInfo> inputs =
        of_inputs(source.inputs(node), [&](ValueId id) { return pattern.known[id.index]; });
    pattern.commutes.push_back(commutes(*node.op, *node.attrs, inputs));
    if (node.op->kind() == OpDef::Kind::Control) continue;
    if (auto inferred = infer(*node.op, *node.attrs, inputs))
      for (std::size_t i = 0; i < source.outputs(node).size() && i < inferred->size(); ++i)
        pattern.known[source.outputs(node)[i].index].value = (*inferred)[i].value;
  }
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
  if (!may_match(graph, node, *pattern)) return {};
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
