#pragma once

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera::passes {

/// Sub-pixel decomposition of transposed convolutions. Output pixels of one residue modulo the
/// stride are a convolution of the input with every stride-th tap of the window; the results of the
/// stride^d convolutions are interleaved:
///
///   y = conv_transpose(x, w) {strides=[2, 2]}
///     =>  y = depth_to_space(concat(conv(x, w00), conv(x, w01), conv(x, w10), conv(x, w11)))
///
/// which skips the terms that the definition multiplies by zero.
///
/// Needs:  static shapes. Leaves alone those with weights or a bias that is not constant.
/// Keeps:  the meaning over the reals (sums are taken in another order); all other nodes.
Expected<Graph> conv_transpose_subpixel(const Graph& graph);

}  // namespace tessera::passes
