#pragma once

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Drops what no output depends on: nodes and weights.
///
/// Keeps:  the meaning of every output; all inputs.
/// Leaves: no node without a use, and no constant.
Graph without_dead(const Graph& graph);

}  // namespace tessera::passes
