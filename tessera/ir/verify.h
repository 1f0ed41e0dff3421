#pragma once

#include "tessera/ir/graph.h"

namespace tessera {

/// Graph verifier: checks the invariants that every pass relies on; the diagnostic names the first
/// violation.
///
/// - operands are defined before they are used; inputs and outputs are values of the graph
/// - names are used once
/// - operators are in the catalog and get as many inputs and results as they take, all their
///   attributes with the defaults filled in, and no others
/// - types are what inference says, as far as it can tell
/// - subgraphs are valid themselves and fit their node
Expected<Done> verify(const Graph& graph);

/// Checks the number of results of an operator.
Expected<Done> check_results(const OpDef& op, std::size_t count);

}  // namespace tessera
