#pragma once

#include "tessera/rules/match.h"

namespace tessera::rules {

/// The target of a rule as a graph of its own, over inputs of the types that are found where it
/// matches. Sizes that are known are constants.
Expected<Graph> target_of(const Graph& graph, const Match& match);

/// The same for inputs of which this is known; for one that the source says nothing of, its type is
/// what the binding makes it. One that is an attribute is a constant of the target.
Expected<Graph> target_of(const Rule& rule, const std::vector<ValueInfo>& inputs,
                          const Binding& binding);

/// The graph with the target of a rule in place of its source.
///
/// Keeps:  inputs and outputs with their names; the names of all that is not replaced.
/// Leaves: no node that nothing depends on. Nodes whose inputs are all constants are not computed.
Expected<Graph> apply(const Graph& graph, const Match& match);

}  // namespace tessera::rules
