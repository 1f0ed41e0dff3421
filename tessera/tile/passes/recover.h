#pragma once

#include <cstdint>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Turns loads and stores through tiles of pointers into accesses of strided views, where the
/// pointers are base + sum of index * stride over the axes of the tile and the mask says no more
/// than bounds of those indices:
///
///   p = offset(x, pid*B + iota)   load(p, pid*B + iota < n, -inf)  =>  vload(view(x, [n]), pid*B)
///   {pad -inf}
///
/// Keeps:  the meaning; what does not fit stays a gather or scatter.
Kernel recover(const Kernel& kernel);

/// Marks accesses of views that never leave their bounds (Vload and Vstore, `ints`: 1 per axis), by
/// facts, and splits a loop whose last round alone may leave them into whole rounds and the last.
/// Backends whose loops end in time by themselves leave loops whole.
enum class Loops : std::uint8_t { Split, Whole };
Kernel split(const Kernel& kernel, Loops loops = Loops::Split);

}  // namespace tessera::tile
