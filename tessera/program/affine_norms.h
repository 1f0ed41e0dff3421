#pragma once

#include "tessera/ir/graph.h"

namespace tessera::program {

/// Batch normalizations with constant statistics, as far as none has become part of a convolution:
/// a product and a sum with one number per channel, without a division.
///
/// Keeps:  the meaning over the reals; all else.
Graph with_affine_norms(const Graph& graph);

}  // namespace tessera::program
