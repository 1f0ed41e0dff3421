#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Canonicalizes a kernel: constant and identity folding (x+0, transposes of transposes, reshapes
/// of reshapes, no-op casts, broadcasts before maps), common subexpression elimination,
/// loop-invariant code motion, dead code elimination.
///
/// Keeps:  the meaning bit for bit, every effect and its order.
/// Leaves: ids dense, no operation outside of the body's reach; a second run changes nothing.
Kernel simplify(const Kernel& kernel);

}  // namespace tessera::tile
