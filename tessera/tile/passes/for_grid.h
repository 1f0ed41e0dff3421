#pragma once

#include "tessera/tile/argument.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Specializes a kernel for one grid: numbers of programs become constants, and program ids are
/// known to be below them, so that extents which divide evenly need no bounds checks.
///
/// Keeps:  what launches of that grid do.
/// Leaves: no number of programs, and no program id along an axis with one program.
Kernel for_grid(const Kernel& kernel, const Grid& grid);

/// Linearizes the grid: a kernel for a one-dimensional grid of as many programs, in which the first
/// axis of the original grid varies fastest.
///
/// Keeps:  what a launch does.
/// Leaves: no number of programs, and program ids along the first axis only.
Kernel along_one_axis(const Kernel& kernel, const Grid& grid);

}  // namespace tessera::tile
