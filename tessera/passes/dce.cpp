#include "tessera/passes/dce.h"

#include <algorithm>

#include "tessera/ir/rebuild.h"

namespace tessera::passes {

Graph without_dead(const Graph& graph) {
  std::vector<bool> live(graph.value_count());
  for (const ValueId id : graph.outputs()) live[id.index] = true;
  const auto is_live = [&](const GraphNode& node) {
    return std::ranges::any_of(graph.outputs(node), [&](ValueId id) { return live[id.index]; });
  };
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    if (!is_live(graph.nodes()[n])) continue;
    for (const ValueId id : graph.inputs(graph.nodes()[n]))
      if (id.present()) live[id.index] = true;
  }
  return rebuild(graph, [&](Rebuilder& out, const GraphNode& node) {
    if (is_live(node)) return out.copy(node);
    return Rebuilder::Results(graph.outputs(node).size());
  });
}

}  // namespace tessera::passes
