#include "tessera/ir/constants.h"

#include <algorithm>

namespace tessera {

std::vector<bool> constant_values(const Graph& graph) {
  std::vector<bool> constant(graph.value_count());
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    constant[i] = graph.constant(ValueId{i}) != nullptr;
  for (const GraphNode& node : graph.nodes()) {
    if (!node.op->pure || !graph.subgraphs(node).empty()) continue;
    const bool all = std::ranges::all_of(
        graph.inputs(node), [&](ValueId id) { return !id.present() || constant[id.index]; });
    for (const ValueId id : graph.outputs(node)) constant[id.index] = all;
  }
  return constant;
}

}  // namespace tessera
