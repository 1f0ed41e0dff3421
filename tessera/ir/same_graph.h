#pragma once

#include "tessera/ir/graph.h"

namespace tessera {

/// Graph isomorphism, independent of names and construction order: equal operators, attributes,
/// wiring, input types, and constants by content. Dead nodes are ignored.
bool same_graph(const Graph& a, const Graph& b);

}  // namespace tessera
