#pragma once

#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// The kernel as it is for launches of one grid alone: numbers of programs are constants, and a
/// program's own number is known to be below them. So what divides evenly needs no bounds.
///
/// Keeps:  what launches of that grid do.
/// Leaves: no number of programs along an axis with one.
Kernel for_grid(const Kernel& kernel, const Grid& grid);

}  // namespace tessera::tile
