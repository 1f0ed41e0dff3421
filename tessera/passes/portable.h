#pragma once

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera::passes {

/// A graph as other runtimes are best at it: operators that ONNX got so late that they have no
/// kernel for them, or do not optimize what stands around them, are written as what they are made
/// of.
///
/// Keeps: the meaning over the reals; names of results.
Expected<Graph> portable(const Graph& whole);

}  // namespace tessera::passes
