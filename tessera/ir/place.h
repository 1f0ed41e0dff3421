#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

/// Adds the nodes of a graph to a host, which may be another graph, one that is being made, or an
/// e-graph. `inputs` are values of the host for the inputs of the graph. The host is told how by
///
///   Value constant(ValueId id)                                           when it is first used
///   std::optional<std::vector<Value>> add(const GraphNode& node, std::vector<Value> operands)
///
/// where a node that is not added ends it. Gives what each value of the graph is in the host.
template <class Value, class Constant, class Add>
std::optional<std::vector<Value>> place_nodes(const Graph& graph, std::span<const Value> inputs,
                                              const Constant& constant, const Add& add) {
  std::vector<Value> values(graph.value_count());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  const auto value = [&](ValueId id) {
    if (!id.present()) return Value{};
    Value& known = values[id.index];
    if (!known.present() && graph.constant(id) != nullptr) known = constant(id);
    return known;
  };
  for (const GraphNode& node : graph.nodes()) {
    std::vector<Value> operands;
    for (const ValueId id : graph.inputs(node)) operands.push_back(value(id));
    const std::optional<std::vector<Value>> results = add(node, std::move(operands));
    if (!results) return std::nullopt;
    for (std::size_t i = 0; i < graph.outputs(node).size(); ++i)
      values[graph.outputs(node)[i].index] = (*results)[i];
  }
  for (const ValueId id : graph.outputs()) value(id);
  return values;
}

}  // namespace tessera
