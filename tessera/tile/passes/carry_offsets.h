#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Strength reduction of pointer tiles: a loop that advances a tile of pointers or indices carries
/// a scalar offset instead.
///
///   for (…, p = start) { … yield(offset(p, broadcast(s))) }
///     =>  for (…, by = 0) { p = offset(start, broadcast(by)) … yield(by + s) }
///
/// Needs:  simplified.
/// Keeps:  the meaning; tiles whose start is not affine are left alone.
Kernel carry_offsets(const Kernel& kernel);

}  // namespace tessera::tile
