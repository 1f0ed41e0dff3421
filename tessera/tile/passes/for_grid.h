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

/// The kernel for a grid of as many programs along the first axis alone, those that were along the
/// first one fastest.
///
/// Keeps:  what a launch does.
/// Leaves: numbers of programs, and numbers along them, of the first axis alone.
Kernel along_one_axis(const Kernel& kernel, const Grid& grid);

}  // namespace tessera::tile
