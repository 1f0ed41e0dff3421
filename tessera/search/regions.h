#pragma once

#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera::search {

/// A part of a graph that is searched on its own.
struct Region {
  std::vector<ValueId> inputs = {}, outputs = {};  // values of the whole graph
  Graph graph = {};                                // over these, with their names
};

struct CutOptions {
  std::size_t least_nodes = 4, most_nodes = 64;  // of a region
};

/// Cuts a graph into regions, in order. Wherever few values go across, best where one value goes to
/// many readers: as between the blocks of a model. A value with one reader is better not cut off
/// from it, as the two may be computed together. Work on weights alone goes with those who use it.
std::vector<Region> regions_of(const Graph& graph, const CutOptions& options);

/// The graph with others in place of its regions, over the same inputs.
Expected<Graph> stitched(const Graph& whole, const std::vector<Region>& regions,
                         const std::vector<Graph>& replacements);

/// What a graph is but for its weights: equal skeletons are equal graphs with other weights in the
/// same places. Numbers, integers and tensors of one repeated number count.
std::string skeleton(const Graph& graph);

/// A graph that was made of `from` without looking at weights, with the weights of `to`, which has
/// the same skeleton as `from`.
Graph with_weights_of(const Graph& made, const Graph& from, const Graph& to);

}  // namespace tessera::search
