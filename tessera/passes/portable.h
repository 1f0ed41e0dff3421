#pragma once

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera::passes {

/// Graph for export to other ONNX runtimes: expands recent operators (RMSNormalization,
/// RotaryEmbedding, Attention, Swish) for which they have no kernels or fusions.
///
/// Keeps: the meaning over the reals; names of results.
Expected<Graph> portable(const Graph& whole);

}  // namespace tessera::passes
