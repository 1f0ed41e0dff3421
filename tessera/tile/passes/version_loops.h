#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Versions a kernel by the trip count of its loops over blocks: a row that is not longer than a
/// block is one iteration, as in Triton's layer norm, whose block is the next power of two. Without
/// the loops, its accumulators are not kept in memory between iterations.
///
///   acc = for (i = a to n step B, acc = zero) {…}  reduce(acc)  …
///     =>  if (a < n && n - a <= B) {the body with i = a  …} else {…}
///
/// Loops are those of the kernel's body with equal bounds and steps; one of them has to carry a
/// tile with an extent of B. Kernels with dots are left alone, whose blocks are small.
/// Keeps:  the meaning.
Kernel version_loops(const Kernel& kernel);

}  // namespace tessera::tile
