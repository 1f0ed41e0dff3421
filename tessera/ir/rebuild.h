#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

/// Copy of a node for another graph: the same operator, attributes, result types and subgraphs,
/// over the operands that `operand` returns for those that are present.
template <class Operand>
Graph::NewNode copied_node(const Graph& from, const GraphNode& node, const Operand& operand) {
  Graph::NewNode copy{.op = node.op, .attrs = *node.attrs};
  for (const ValueId id : from.inputs(node)) copy.inputs.push_back(id.present() ? operand(id) : id);
  for (const ValueId id : from.outputs(node)) copy.outputs.push_back(from.type(id));
  const auto subgraphs = from.subgraphs(node);
  copy.subgraphs.assign(subgraphs.begin(), subgraphs.end());
  return copy;
}

/// State of a node-by-node graph rewrite: the old graph, the new graph and the map between their
/// values.
class Rebuilder {
 public:
  using Results = std::vector<ValueId>;

  explicit Rebuilder(const Graph& from);

  const Graph& from() const { return from_; }
  const Graph& made() const { return made_; }

  /// Values of the new graph for values of the old one; a constant is copied when it is first used.
  ValueId mapped(ValueId value);
  std::vector<ValueId> mapped(std::span<const ValueId> values);
  /// Inputs of an old node, in the new graph.
  std::vector<ValueId> inputs_of(const GraphNode& node) { return mapped(from_.inputs(node)); }

  /// Copies a node over the mapped inputs, or over others.
  Results copy(const GraphNode& node) { return copy(node, inputs_of(node)); }
  Results copy(const GraphNode& node, std::vector<ValueId> inputs);

  /// Adds new nodes and constants.
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

/// Rewrites a graph node by node, in topological order. The values that the visitor returns replace
/// the node's results and take over their names, unless they have names already; a result for which
/// it returns none must be unused.
///
/// Keeps: inputs and outputs in order, names, and of the constants those that are used.
Graph rebuild(const Graph& graph,
              const std::function<Rebuilder::Results(Rebuilder&, const GraphNode&)>& visitor);

}  // namespace tessera
