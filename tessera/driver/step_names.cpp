#include "tessera/driver/step_names.h"

#include <algorithm>
#include <set>

#include "tessera/driver/provenance.h"
#include "tessera/expr/walk.h"
#include "tessera/rules/explain.h"

namespace tessera {
namespace {

constexpr std::size_t kMostNames = 60;  // of one step

bool has_reduction(const Graph& graph, const GraphNode& node) {
  const auto definition = rules::definition_of(graph, node);
  return definition && std::ranges::any_of(definition->outputs, [](const Output& output) {
           return has_fold(output.value);
         });
}

/// By node: whether it computes on constants alone.
std::vector<bool> constant_nodes(const Graph& graph) {
  std::vector<bool> is_constant(graph.nodes().size());
  for (std::size_t n = 0; n < is_constant.size(); ++n)
    is_constant[n] = std::ranges::all_of(graph.inputs(graph.nodes()[n]), [&](ValueId input) {
      if (!input.present() || graph.constant(input) != nullptr) return true;
      const GraphNode* const producer = graph.producer(input);
      return producer != nullptr &&
             is_constant[static_cast<std::size_t>(producer - graph.nodes().data())];
    });
  return is_constant;
}

}  // namespace

std::string node_label(const Graph& graph, std::size_t node) {
  if (!graph.node_name(node).empty()) return graph.node_name(node);
  const auto results = graph.outputs(graph.nodes()[node]);
  return results.empty() ? "" : graph.name(results[0]);
}

std::vector<std::vector<std::string>> step_names(
    const Graph& original, const Graph& compiled,
    const std::vector<program::CompileReport::Step>& steps) {
  const std::vector<std::vector<std::int64_t>> origins = origins_of(original, compiled);
  const std::vector<bool> is_constant = constant_nodes(original);
  std::vector<std::vector<std::string>> names(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::set<const OpDef*> ops;
    std::set<std::int64_t> nodes;
    for (const std::size_t node : steps[i].nodes) {
      if (node >= origins.size()) continue;
      ops.insert(&*compiled.nodes()[node].op);
      nodes.insert(origins[node].begin(), origins[node].end());
    }
    std::vector<std::string> ranked[4];
    for (const std::int64_t id : nodes) {
      const auto n = static_cast<std::size_t>(id);
      const GraphNode& node = original.nodes()[n];
      const int rank = is_constant[n]                   ? 3
                       : !ops.contains(&*node.op)       ? 2
                       : !has_reduction(original, node) ? 1
                                                        : 0;
      ranked[rank].push_back(node_label(original, n));
    }
    for (std::vector<std::string>& rank : ranked)
      names[i].insert(names[i].end(), rank.begin(), rank.end());
    if (names[i].size() > kMostNames) names[i].resize(kMostNames);
  }
  return names;
}

}  // namespace tessera
