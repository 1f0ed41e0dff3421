#pragma once

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Dead code elimination: removes the nodes and constants that no output depends on.
///
/// Keeps:  the meaning of every output; all inputs.
/// Leaves: no node and no constant without a use.
Graph without_dead(const Graph& graph);

}  // namespace tessera::passes
