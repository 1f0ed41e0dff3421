#pragma once

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Pools the maxima of large windows along one axis after the other:
///
///     max_pool(x) {kernel_shape=[13, 13]}
///       = max_pool(max_pool(x) {kernel_shape=[1, 13]}) {kernel_shape=[13, 1]}
///
/// Leaves alone small windows, for which two passes cost more, and pools whose indices are a
/// result.
/// Needs:  static shapes.
/// Keeps:  all values, bit for bit; all other nodes.
Graph separable_pools(const Graph& graph);

}  // namespace tessera::passes
