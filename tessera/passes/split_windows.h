#pragma once

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Splits convolutions whose windows read mostly padding, as those with large dilations, into a
/// convolution of one pixel for each tap, over the positions at which the tap reads the image:
///
///     conv(x, w) = conv(x, w[center]) + pad(conv(slice(x), w[first])) + …
///
/// Leaves alone those where the sum costs more than the padding, those in groups, and weights that
/// are not constants of f32.
/// Keeps:  the meaning over the reals (zero times infinity is NaN); all other nodes.
Graph split_windows(const Graph& graph);

}  // namespace tessera::passes
