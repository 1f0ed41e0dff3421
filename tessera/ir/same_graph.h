#pragma once

#include "tessera/ir/graph.h"

namespace tessera {

/// Whether two graphs are the same, whatever things are called and in which order they were made:
/// operators, attributes, wiring, types of inputs, constants by content. Dead nodes do not count.
bool same_graph(const Graph& a, const Graph& b);

}  // namespace tessera
