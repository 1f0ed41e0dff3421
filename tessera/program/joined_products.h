#pragma once

#include "tessera/ir/graph.h"

namespace tessera::program {

/// Products of one operand with several constant matrices of one size (queries, keys and values of
/// attention), each with a row added or none, as one product with all of them:
///
///   a = x · u + p,  b = x · v + q   =>   ab[i] = x · (u, v)[i] + (p, q)[i],  a = ab[0],  b = ab[1]
///
/// so that a GPU has more to do at once. The parts lie one after the other.
/// Keeps: the meaning; results of the graph, and all else, as they are.
Graph with_joined_products(const Graph& graph);

}  // namespace tessera::program
