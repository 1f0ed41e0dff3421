#pragma once

#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera::search {

/// Region of a graph that is searched on its own.
struct Region {
  std::vector<ValueId> inputs = {}, outputs = {};  // values of the whole graph
  Graph graph = {};                                // over these, with their names
  /// Whether a step function of the whole graph reads what it computes (`passes/step_functions.h`):
  /// another rounding could change results by a whole step.
  bool keeps_rounding = false;
};

/// Options of regions_of.
struct CutOptions {
  std::size_t least_nodes = 4, most_nodes = 64;  // nodes of a region
};

/// Partitions a graph into consecutive regions where few values cross, preferably where one value
/// has many readers, as between the blocks of a model. A value with one reader should stay with it,
/// as the two may be fused. Work on weights belongs to the region that uses it.
std::vector<Region> regions_of(const Graph& graph, const CutOptions& options);

/// Replaces the regions of a graph by other graphs over the same inputs.
Expected<Graph> with_regions_replaced(const Graph& whole, const std::vector<Region>& regions,
                                      const std::vector<Graph>& replacements);

/// Key of a graph without its weights: equal skeletons are equal graphs with different weights in
/// the same places. Scalars, integers and uniform tensors are part of the skeleton.
std::string skeleton(const Graph& graph);

/// Transfers a rewritten graph to other weights: `made` was derived from `from` without looking at
/// weights; the result uses those of `to`, which has the same skeleton as `from`.
Graph with_weights_of(const Graph& made, const Graph& from, const Graph& to);

}  // namespace tessera::search
