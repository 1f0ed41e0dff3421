#include "tessera/driver/provenance.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace tessera {
namespace {

/// Names of the results of nodes, and of the outputs of the graph.
std::set<std::string> computed_names(const Graph& graph) {
  std::set<std::string> names;
  for (const GraphNode& node : graph.nodes())
    for (const ValueId result : graph.outputs(node))
      if (graph.is_named(result)) names.insert(graph.name(result));
  return names;
}

using Region = std::vector<std::int64_t>;  // numbers of shared values, sorted
constexpr std::size_t kMostOfRegion = 16;  // later ones of a node with many uses tell no more

/// By node: the shared values that it leads to without passing another one.
std::vector<Region> regions_of(const Graph& graph,
                               const std::map<std::string, std::int64_t>& shared) {
  std::vector<Region> of_value(graph.value_count());
  const auto join = [](Region& region, const Region& other) {
    Region both;
    std::ranges::set_union(region, other, std::back_inserter(both));
    if (both.size() > kMostOfRegion) both.resize(kMostOfRegion);
    region = std::move(both);
  };
  // Outputs without a common name are a region each, by their position.
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    join(of_value[graph.outputs()[i].index], {static_cast<std::int64_t>(shared.size() + i)});
  std::vector<Region> of_node(graph.nodes().size());
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const GraphNode& node = graph.nodes()[n];
    for (const ValueId result : graph.outputs(node)) {
      const auto it = graph.is_named(result) ? shared.find(graph.name(result)) : shared.end();
      if (it != shared.end()) of_value[result.index] = {it->second};
      join(of_node[n], of_value[result.index]);
    }
    for (const ValueId input : graph.inputs(node))
      if (input.present()) join(of_value[input.index], of_node[n]);
  }
  return of_node;
}

}  // namespace

std::vector<std::vector<std::int64_t>> origins_of(const Graph& original, const Graph& rewritten) {
  const std::set<std::string> before = computed_names(original), after = computed_names(rewritten);
  std::map<std::string, std::int64_t> shared;
  for (const std::string& name : before)
    if (after.contains(name)) shared.emplace(name, static_cast<std::int64_t>(shared.size()));
  std::map<std::int64_t, std::vector<std::int64_t>> nodes_of;  // by region
  const std::vector<Region> old_regions = regions_of(original, shared);
  for (std::size_t n = 0; n < old_regions.size(); ++n)
    for (const std::int64_t region : old_regions[n])
      nodes_of[region].push_back(static_cast<std::int64_t>(n));
  std::vector<std::vector<std::int64_t>> origins;
  for (const Region& regions : regions_of(rewritten, shared)) {
    std::set<std::int64_t> nodes;
    for (const std::int64_t region : regions)
      nodes.insert(nodes_of[region].begin(), nodes_of[region].end());
    origins.emplace_back(nodes.begin(), nodes.end());
  }
  return origins;
}

}  // namespace tessera
