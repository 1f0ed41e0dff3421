#pragma once

#include "tessera/rules/match.h"
#include "tessera/rules/meaning.h"

namespace tessera::rules {

/// Values of a graph, as far as targets of rules depend on them.
struct GraphValues {
  using Value = ValueId;

  const Graph& graph;

  const Type& type(ValueId value) const { return graph.type(value); }
  const Tensor* constant(ValueId value) const { return graph.constant(value); }
};

/// A graph as a view for the matcher (`occurrence.h`).
struct GraphView : GraphValues {
  using Node = const GraphNode*;

  GraphView(const Graph& graph, const Surroundings& surroundings)
      : GraphValues{graph}, surroundings(surroundings) {}

  bool is_constant(ValueId value) const { return surroundings.is_constant(value); }
  bool equal(ValueId a, ValueId b) const { return a == b; }
  bool may_be_result_of(ValueId value, const OpDef& op) const {
    const GraphNode* node = graph.producer(value);
    return node != nullptr && node->op == &op;
  }

  template <class Visit>
  void for_each_producer(ValueId value, std::size_t output, const Visit& visit) const {
    const GraphNode* node = graph.producer(value);
    if (node == nullptr) return;
    const auto results = graph.outputs(*node);
    if (output < results.size() && results[output] == value) visit(node);
  }
  template <class Visit>
  void for_each_node(const OpDef& op, const Visit& visit) const {
    for (const GraphNode& node : graph.nodes())
      if (node.op == &op && !visit(&node)) return;
  }

  const OpDef& op(Node node) const { return *node->op; }
  const Attrs& attrs(Node node) const { return *node->attrs; }
  std::span<const ValueId> inputs(Node node) const { return graph.inputs(*node); }
  std::span<const ValueId> outputs(Node node) const { return graph.outputs(*node); }
  bool has_subgraphs(Node node) const { return !graph.subgraphs(*node).empty(); }
  std::vector<ValueInfo> known_inputs(Node node) const {
    std::vector<ValueInfo> known;
    for (const ValueId id : inputs(node))
      known.push_back(id.present() ? surroundings.known(id) : ValueInfo{.present = false});
    return known;
  }
  bool means(Node node, const Attrs& other) const {
    return *node->attrs == other ||
           same_meaning(*node->op, other, *node->attrs, known_inputs(node));
  }

  const Surroundings& surroundings;
};

}  // namespace tessera::rules
