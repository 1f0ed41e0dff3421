#pragma once

#include "tessera/ir/graph.h"

namespace tessera {

/// Whether a graph is what every pass may rely on; the diagnostic names the first thing that is
/// not:
///
/// - operands are made before they are used; inputs and outputs are values of the graph
/// - names are used once
/// - operators are in the catalog and get as many inputs and results as they take, all their
///   attributes with the defaults filled in, and no others
/// - types are what inference says, as far as it can tell
/// - subgraphs are valid themselves and fit their node
Expected<Done> verify(const Graph& graph);

/// Whether an operator can have so many results; a diagnostic if not.
Expected<Done> check_results(const OpDef& op, std::size_t count);

}  // namespace tessera
