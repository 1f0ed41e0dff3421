#pragma once

#include "tessera/lower/group.h"

namespace tessera::lower {

/// Schedule of direct convolution: small windows (pooling, depthwise convolution) with the
/// innermost axis vectorized. The window is unrolled for several neighbouring outputs, so that
/// weights and overlapping pixels are loaded once and accumulators stay in registers. None where
/// the stage is not of this kind, and for a GPU.
Expected<std::optional<tile::Schedule>> direct_conv_schedule(const tile::Stage& stage,
                                                             const machine::Machine& machine,
                                                             const LoopParameters& parameters = {});

}  // namespace tessera::lower
