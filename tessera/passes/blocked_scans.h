#pragma once

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Replaces long prefix sums and products, whose definition adds up every prefix on its own, by
/// those of blocks and of the totals of blocks:
///
///     cum_sum(x) = cum_sum(block of x) + exclusive cum_sum(sum of each block)
///
/// Needs:  static shapes and a constant axis; leaves alone those of 16-bit floats, whose totals
///         would be rounded.
/// Keeps:  the meaning over the reals; all other nodes.
Graph blocked_scans(const Graph& graph);

}  // namespace tessera::passes
