#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::testing {

/// How large tensors are: a few elements, or more than vectors, tiles and panels take at once.
enum class Extents { Few, Many };

struct RandomGraphs {
  std::uint64_t seed = 1;
  int count = 100;
  int max_nodes = 12;
  Extents extents = Extents::Few;
};

/// A valid graph over the catalog, the same for the same seed: tensors of numbers, of all ranks,
/// with axes of size 1; operators with one or several results; some values without a name.
Graph random_graph(std::uint64_t seed, int max_nodes, Extents extents = Extents::Few);

/// Calls `f` with many; a failure in it names the graph.
void for_each_random_graph(const RandomGraphs& which, const std::function<void(const Graph&)>& f);

/// Numbers in [-1, 1) for each input, whose sizes are numbers.
std::vector<Tensor> random_inputs(const Graph& graph, std::uint64_t seed);

}  // namespace tessera::testing
