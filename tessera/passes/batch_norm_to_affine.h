#pragma once

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Replaces a batch normalization with constant statistics, where none was folded into a
/// convolution, by a multiply and an add with one constant per channel:
///
///   batch_normalization(x, s, b, m, v)  =>  add(mul(x, s'), b')
///
/// Keeps:  the meaning over the reals; all other nodes.
Graph batch_norm_to_affine(const Graph& graph);

}  // namespace tessera::passes
