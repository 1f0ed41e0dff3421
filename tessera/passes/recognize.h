#pragma once

#include "tessera/passes/rewriter.h"

namespace tessera::passes {

/// Idiom recognition: replaces subgraphs that compute softmax, log_softmax, layer or rms
/// normalization, gelu, swish or hard_swish by one node; then rewrites attention and rotary
/// embeddings to the bodies of these composites (softmax(scale * q k^T + mask) v; x * cos +
/// rotate(x)
/// * sin), so that one kernel computes them, and names them among the changes.
///
/// There are no patterns. Any subgraph that computes a value from one other value of its type, with
/// constants and perhaps a scale and a bias, is tried. It is recognized if it is *proved* equal to
/// a composite on the same inputs, over the reals, where a constant within 2 ulp of a named real
/// (0.70710677) may stand for it (docs/verification.md). The scalar functions that a subgraph
/// applies select the composites to try; equal subgraphs are decided once.
///
/// Keeps:  guards against NaN, which the proofs do not cover.
/// Leaves: composites as single nodes, without values inside that are used elsewhere.
Expected<Graph> recognized(const Graph& graph, Changes& changes);

}  // namespace tessera::passes
