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

/// Schedule of a direct filter gradient: few taps, each a sum over the pixels of all images, with
/// the innermost axis (the channels of a depthwise convolution) vectorized. Taps are unrolled
/// inside of the loops over pixels, so that a pixel is loaded once for all of them and sums stay in
/// registers. None where the stage is not of this kind, and for a GPU.
Expected<std::optional<tile::Schedule>> direct_filter_schedule(
    const tile::Stage& stage, const machine::Machine& machine,
    const LoopParameters& parameters = {});

}  // namespace tessera::lower
