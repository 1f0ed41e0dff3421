#pragma once

#include <cstdint>
#include <optional>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Thread coarsening: merges `count` consecutive programs along axis 0 of the grid into one, where
/// the program id only selects rows of views:
///
///   row = pid()   t: f16[1, 256] = vload(x, row, 0)  =>  t: f16[4, 256] = vload(x, 4*row, 0)
///
/// Tiles and numbers of a program without an axis for its row get one (f16[256] => f16[4, 256]).
/// Assumptions about the program id are dropped.
///
/// Needs:  at run time `npid()` along axis 0 is the number of programs of the source; the result
///         runs in cdiv(npid, count) programs.
/// Keeps:  stored values, but for the order between programs; nothing is stored for programs beyond
///         the grid, although rows of theirs that exist may be read.
/// Returns nothing where a program does more than load rows, compute and store them.
std::optional<Kernel> coarsen(const Kernel& kernel, std::int64_t count);

}  // namespace tessera::tile
