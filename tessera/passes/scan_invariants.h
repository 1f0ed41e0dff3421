#pragma once

#include "tessera/passes/fold.h"

namespace tessera::passes {

/// Loop-invariant code motion for scans: states that the body returns unchanged become captures,
/// and constant captures become constants of the body, in which folding then sees them.
///
///   r, y = scan(h, w, x) { body(h, w, x) { t = tanh(add(x, matmul(h, w)))  return t, w, t } }
///     =>  r, y = scan(h, x) { body(h, x) { ... w is a constant ... return t, t } }
///
/// Keeps: the meaning, bit for bit.
Expected<Graph> scan_invariants(const Graph& graph, const FoldLimits& limits);

}  // namespace tessera::passes
