#pragma once

#include <cstdint>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

/// Nodes of an original graph that each node of a rewritten graph came from, by node.
///
/// Rewriting keeps the names of values that it keeps, so that values of one name are equal. They
/// cut both graphs into regions: a node belongs to the region of the named values that it leads to
/// without passing another one. Nodes of the same region correspond. No pass has to keep track.
std::vector<std::vector<std::int64_t>> origins_of(const Graph& original, const Graph& rewritten);

}  // namespace tessera
