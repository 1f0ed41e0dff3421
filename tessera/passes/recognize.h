#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Makes one node of what computes softmax, log_softmax, layer or rms normalization, gelu, swish or
/// hard_swish, however it is spelled; then finds attention and rotary embeddings, which are written
/// as their bodies have them (softmax(scale * q k^T + mask) v; x * cos + turned(x) * sin), so that
/// one kernel computes them, and are named among the changes.
///
/// There are no patterns. A candidate is any part of the graph that computes a value from one other
/// value of its type, with numbers and perhaps a scale and a bias. It is recognized if it is
/// *proved* equal to a composite on the same inputs, over the reals, where a constant within 2 ulp
/// of a named real (0.70710677) may stand for it (docs/verification.md). What functions a candidate
/// applies tells which composites are worth an attempt; equal candidates are decided once.
///
/// Keeps:  what guards against NaN, which no proof speaks of.
/// Leaves: composites as single nodes, without values inside that are used elsewhere.
Expected<Graph> recognized(const Graph& graph, Changes& changes);

}  // namespace tessera::passes
