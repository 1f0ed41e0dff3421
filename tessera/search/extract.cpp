#include "tessera/search/extract.h"

#include <algorithm>
#include <set>

namespace tessera::search {

using egraph::ClassId;
using egraph::NodeId;

Extraction::Extraction(const egraph::EGraph& egraph, const Graph& from,
                       const std::vector<ClassId>& values,
                       const std::function<double(const egraph::ENode&)>& weight)
    : egraph_(egraph), from_(from), values_(values) {
  for (const ClassId id : egraph.classes())
    for (const NodeId node : alternatives(id))
      if (!weights_.contains(node)) weights_[node] = weight(egraph.node(node));
  solve();
}

/// Whether a class is an input or constant.
bool Extraction::is_leaf(ClassId id) const {
  const egraph::EClass& found = egraph_.at(id);
  return found.input.has_value() || found.constant != nullptr;
}

std::vector<NodeId> Extraction::alternatives(ClassId id) const {
  std::vector<NodeId> nodes;
  for (const egraph::Member& member : egraph_.at(id).members)
    if (egraph_.is_live(member.node) && std::ranges::find(nodes, member.node) == nodes.end())
      nodes.push_back(member.node);
  return nodes;
}

double Extraction::weight_of(const NodeChoice& chosen) const {
  std::set<NodeId> nodes;
  double sum = 0;
  for (const auto& [id, node] : chosen)
    if (nodes.insert(node).second) sum += weights_.at(node);
  return sum;
}

/// Solution by this node: the union of its operands' best solutions; nothing if that would be
/// cyclic.
std::optional<Extraction::Solution> Extraction::made_by(NodeId node) const {
  Solution made;
  for (const ClassId input : egraph_.node(node).inputs) {
    if (!input.present() || is_leaf(input)) continue;
    const auto it = solutions_.find(egraph_.find(input));
    if (it == solutions_.end()) return std::nullopt;
    made.chosen.insert(it->second.chosen.begin(), it->second.chosen.end());
  }
  for (const ClassId output : egraph_.node(node).outputs)
    if (made.chosen.contains(egraph_.find(output))) return std::nullopt;
  for (const ClassId output : egraph_.node(node).outputs)
    made.chosen.emplace(egraph_.find(output), node);
  made.weight = weight_of(made.chosen);
  return made;
}

/// Iterates to a fixed point: a cheaper operand may make another node the best.
void Extraction::solve() {
  const std::vector<ClassId> classes = egraph_.classes();
  constexpr int kMostRounds = 50;
  bool changed = true;
  for (int round = 0; changed && round < kMostRounds; ++round) {
    changed = false;
    for (const ClassId id : classes) {
      if (is_leaf(id)) continue;
      for (const NodeId node : alternatives(id)) {
        std::optional<Solution> made = made_by(node);
        const auto it = solutions_.find(id);
        if (!made || (it != solutions_.end() && made->weight >= it->second.weight * (1 - 1e-9)))
          continue;
        solutions_.insert_or_assign(id, *std::move(made));
        changed = true;
      }
    }
  }
}

std::optional<NodeChoice> Extraction::least() const {
  NodeChoice chosen;
  for (const ValueId output : from_.outputs()) {
    const ClassId id = egraph_.find(values_[output.index]);
    if (is_leaf(id)) continue;
    const auto it = solutions_.find(id);
    if (it == solutions_.end()) return std::nullopt;
    chosen.insert(it->second.chosen.begin(), it->second.chosen.end());
  }
  return chosen;
}

std::optional<NodeChoice> Extraction::with(const NodeChoice& chosen, ClassId id,
                                           NodeId node) const {
  NodeChoice made = chosen;
  made[id] = node;
  for (const ClassId input : egraph_.node(node).inputs) {
    if (!input.present() || is_leaf(input)) continue;
    const auto it = solutions_.find(egraph_.find(input));
    if (it == solutions_.end()) return std::nullopt;
    made.insert(it->second.chosen.begin(), it->second.chosen.end());
  }
  return made;
}

std::optional<Graph> Extraction::graph(const NodeChoice& chosen) const {
  Graph made;
  made.set_name(from_.name());
  std::map<ClassId, ValueId> values;
  std::vector<ValueId> inputs;
  for (const ValueId id : from_.inputs()) {
    inputs.push_back(made.add_input(from_.type(id), from_.is_named(id) ? from_.name(id) : ""));
    values.emplace(egraph_.find(values_[id.index]), inputs.back());
  }
  std::set<NodeId> open;  // on the way
  std::map<NodeId, std::vector<ValueId>> results;
  const std::function<bool(ClassId)> compute = [&](ClassId id) {
    id = egraph_.find(id);
    if (values.contains(id)) return true;
    if (const Tensor* constant = egraph_.at(id).constant) {
      values[id] = made.add_constant(*constant, {});
      return true;
    }
    const auto it = chosen.find(id);
    if (it == chosen.end()) return false;
    const NodeId number = it->second;
    const egraph::ENode& node = egraph_.node(number);
    if (!results.contains(number)) {
      if (!open.insert(number).second) return false;  // it needs itself
      Graph::NewNode copy{.op = &node.op(), .attrs = node.attrs()};
      for (const ClassId input : node.inputs) {
        if (input.present() && !compute(input)) return false;
        copy.inputs.push_back(input.present() ? values.at(egraph_.find(input)) : ValueId{});
      }
      for (const ClassId output : node.outputs) copy.outputs.push_back(*egraph_.at(output).type);
      copy.subgraphs = node.subgraphs;
      results[number] = made.add_node(std::move(copy));
      open.erase(number);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (egraph_.find(node.outputs[i]) == id) values[id] = results[number][i];
    return values.contains(id);
  };
  std::vector<ValueId> outputs;
  for (const ValueId id : from_.outputs()) {
    const ClassId wanted = egraph_.find(values_[id.index]);
    if (!compute(wanted)) return std::nullopt;
    outputs.push_back(values.at(wanted));
  }
  made.set_outputs(std::move(outputs));
  for (const GraphNode& node : from_.nodes())
    for (const ValueId id : from_.outputs(node)) {
      const auto it = values.find(egraph_.find(values_[id.index]));
      if (from_.is_named(id) && it != values.end() && !made.is_named(it->second))
        made.set_name(it->second, from_.name(id));
    }
  return made;
}

}  // namespace tessera::search
