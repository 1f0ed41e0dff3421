#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Loops that move a whole tile of pointers or indices carry how far it has moved instead:
///
///   for (…, p = start) { … yield(offset(p, broadcast(s))) }
///     =>  for (…, by = 0) { p = offset(start, broadcast(by)) … yield(by + s) }
///
/// Needs:  simplified.
/// Keeps:  the meaning; tiles whose start is not affine are left alone.
Kernel carry_offsets(const Kernel& kernel);

}  // namespace tessera::tile
