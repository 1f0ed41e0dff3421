#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Hoists views out of loops that advance their pointers: the view is made once, in front of the
/// loop, and its accesses move along one of its axes. The form that pipelined loops
/// (gpu/loop_pipeline.h) need.
///
///   for (k …, p = x) { v = view(p, [m, K - k*B])  vload(v, 0, 0)   yield(offset(p, B)) }
///   => v = view(x, [m, K])   for (k …) { vload(v, 0, k*B) }
///
/// Keeps:  the meaning.
Kernel hoist_views(const Kernel& kernel);

}  // namespace tessera::tile
