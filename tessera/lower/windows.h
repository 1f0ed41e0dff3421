#pragma once

#include "tessera/lower/group.h"

namespace tessera::lower {

/// A small window around each element, folded: pools and depthwise convolutions, the last axis in
/// memory as vectors. The window is straight-line code for several neighbours at a time, so that
/// what they share, weights and overlapping pixels, is loaded once and their sums stay in
/// registers. Nothing where the stage is no such fold, and for a GPU.
Expected<std::optional<tile::Schedule>> window_schedule(const tile::Stage& stage,
                                                        const machine::Machine& machine);

}  // namespace tessera::lower
