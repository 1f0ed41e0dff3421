#pragma once

#include <cstdint>
#include <vector>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Horizontal fusion: one kernel for a one-dimensional grid in which the first programs[0] programs
/// execute the first kernel, the next ones the second, and so on. Its parameters are those of all
/// kernels in order. The kernels have one-dimensional grids (along_one_axis).
///
/// Keeps:  what launches of the kernels one after the other do, where none reads or overwrites what
///         another writes.
/// Leaves: one branch per kernel, whose condition all threads of a program agree on.
Kernel merge(const std::vector<Kernel>& kernels, const std::vector<std::int64_t>& programs);

}  // namespace tessera::tile
