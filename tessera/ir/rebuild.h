#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

/// A node of a graph as one to be added to another graph: the same operator, attributes, types of
/// results and subgraphs, over the operands that `operand` gives for those that are present.
template <class Operand>
Graph::NewNode copied_node(const Graph& from, const GraphNode& node, const Operand& operand) {
  Graph::NewNode copy{.op = node.op, .attrs = *node.attrs};
  for (const ValueId id : from.inputs(node)) copy.inputs.push_back(id.present() ? operand(id) : id);
  for (const ValueId id : from.outputs(node)) copy.outputs.push_back(from.type(id));
  const auto subgraphs = from.subgraphs(node);
  copy.subgraphs.assign(subgraphs.begin(), subgraphs.end());
  return copy;
}

/// A new graph that takes the place of an old one, node by node.
class Rebuilder {
 public:
  using Results = std::vector<ValueId>;

  explicit Rebuilder(const Graph& from);

  const Graph& from() const { return from_; }
  const Graph& made() const { return made_; }

  /// Values of the old graph in the new one; a constant comes along when it is first asked for.
  ValueId mapped(ValueId value);
  std::vector<ValueId> mapped(std::span<const ValueId> values);
  /// The inputs of a node of the old graph, in the new one.
  std::vector<ValueId> inputs_of(const GraphNode& node) { return mapped(from_.inputs(node)); }

  /// The node as it is, over the mapped inputs, or over others.
  Results copy(const GraphNode& node) { return copy(node, inputs_of(node)); }
  Results copy(const GraphNode& node, std::vector<ValueId> inputs);

  /// What the old graph does not have.
  Results add(Graph::NewNode node) { return made_.add_node(std::move(node)); }
  ValueId constant(Tensor tensor) { return made_.add_constant(std::move(tensor), {}); }

 private:
  friend Graph rebuild(const Graph&, const std::function<Results(Rebuilder&, const GraphNode&)>&);

  void replace(const GraphNode& node, const Results& with);
  void take_name(ValueId from, ValueId to);

  const Graph& from_;
  Graph made_;
  std::vector<std::optional<ValueId>> mapped_;  // by value of the old graph
};

/// Walks over the nodes in order. What the visitor returns takes the place of the node's results
/// and has their names, unless it is called something already; a result for which it returns none
/// is not used.
///
/// Keeps: inputs and outputs in order, names, and of the constants those that are used.
Graph rebuild(const Graph& graph,
              const std::function<Rebuilder::Results(Rebuilder&, const GraphNode&)>& visitor);

}  // namespace tessera
