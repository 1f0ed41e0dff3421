#pragma once

#include <cstdint>
#include <optional>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// `count` programs in a row along axis 0 of the grid as one, where the number of a program says
/// nothing but which rows of views are its own:
///
///   row = pid()   t: f16[1, 256] = vload(x, row, 0)  =>  t: f16[4, 256] = vload(x, 4*row, 0)
///
/// Needs:  `npid()` along axis 0 to be how many programs of the source there are when the result
///         runs, which is in cdiv(that, count) programs.
/// Keeps:  what is written, but for its order between programs; nothing is written for programs
///         beyond the grid, whose rows are read where there are any.
/// Nothing where a program does more than read rows, compute and write them.
std::optional<Kernel> coarsen(const Kernel& kernel, std::int64_t count);

}  // namespace tessera::tile
