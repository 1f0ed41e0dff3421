#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Folds constants and identities (x+0, transposes of transposes, reshapes of reshapes, casts that
/// change nothing, broadcasts before maps), computes equal values once, moves what a loop does not
/// change out of it, and drops what nothing uses: operations, carried values, branches never taken.
///
/// Keeps:  the meaning bit for bit, every effect and its order.
/// Leaves: ids dense, no operation outside of the body's reach; a second run changes nothing.
Kernel simplify(const Kernel& kernel);

}  // namespace tessera::tile
