#pragma once

#include "tessera/ir/graph.h"
#include "tessera/machine/machine.h"

namespace tessera::program {

/// Convolutions in groups of few filters, which would leave most lanes of a vector empty, as
/// convolutions in fewer groups: neighbours share their channels, and weights between a filter and
/// the channels of another group are zero.
///
/// Leaves alone those with weights that are not constant, and groups of one channel, which are
/// computed along the channels.
/// Keeps:  the meaning over the reals; all else.
Graph with_wide_groups(const Graph& graph, const machine::Machine& machine);

}  // namespace tessera::program
