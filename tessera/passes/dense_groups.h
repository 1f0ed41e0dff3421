#pragma once

#include "tessera/ir/graph.h"
#include "tessera/machine/machine.h"

namespace tessera::passes {

/// Dense form of grouped convolutions: where a group has fewer filters than a vector has lanes, or
/// on a GPU fewer channels than a k-step of tensor cores, neighbouring groups are merged into one,
/// with zero weights between a filter and the channels of the other groups.
///
/// Leaves alone those with weights that are not constant, and depthwise convolutions, which are
/// vectorized along the channels.
/// Keeps:  the meaning over the reals (zero times infinity is NaN); all other nodes.
Graph dense_groups(const Graph& graph, const machine::Machine& machine);

}  // namespace tessera::passes
