#pragma once

#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Rounding-sensitive nodes: by node, whether a float result of it reaches a step function (floor,
/// mod, a comparison, a conversion to integers) through elementwise operators and data movement.
/// There floor(x / 41) is not floor(x * (1 / 41)), although both are equal over the reals: another
/// rounding changes the result by a whole step.
///
/// Rounding to the nearest (quantization) does not count: it is far from a step where its argument
/// is a whole number. Reductions end the search: what they compute is rounded anyway.
std::vector<bool> nodes_before_steps(const Graph& graph);

}  // namespace tessera::passes
