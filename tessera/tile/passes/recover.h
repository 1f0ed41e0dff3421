#pragma once

#include <cstdint>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Recovers strided views from pointer arithmetic: turns loads and stores through tiles of pointers
/// into accesses of views, where the pointers are base + sum of index * stride over the axes of the
/// tile and the mask only bounds those indices:
///
///   p = offset(x, pid*B + iota)   load(p, pid*B + iota < n, -inf)  =>  vload(view(x, [n]), pid*B)
///   {pad -inf}
///
/// Keeps:  the meaning; all other accesses stay gathers or scatters.
Kernel recover(const Kernel& kernel);

/// Marks accesses of views that are proved in bounds (Vload and Vstore, `ints`: 1 per axis), and
/// peels the last iteration of a loop where only that one may leave them. Back ends with predicated
/// loops ask for whole loops.
enum class Loops : std::uint8_t { Split, Whole };
Kernel split(const Kernel& kernel, Loops loops = Loops::Split);

}  // namespace tessera::tile
