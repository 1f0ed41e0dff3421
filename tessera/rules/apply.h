#pragma once

#include "tessera/rules/match.h"

namespace tessera::rules {

/// The target of a rule as a graph of its own, over inputs of the types that are found where it
/// matches. Sizes that are known are constants.
Expected<Graph> target_of(const Graph& graph, const Match& match);

/// The graph with the target of a rule in place of its source.
///
/// Keeps:  inputs and outputs with their names; the names of all that is not replaced.
/// Leaves: no node that nothing depends on. Nodes whose inputs are all constants are not computed.
Expected<Graph> apply(const Graph& graph, const Match& match);

}  // namespace tessera::rules
