#pragma once

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera::program {

/// Transposed convolutions as convolutions. Of the result, every s-th pixel is computed of every
/// s-th tap of the window: along each axis s convolutions of the small image, whose results lie
/// interleaved. In place of sums in which most terms do not count:
///
///   y = conv_transpose(x, w) {strides=[2, 2]}
///     =>  y = depth_to_space(concat(conv(x, w00), conv(x, w01), conv(x, w10), conv(x, w11)))
///
/// Needs:  sizes that are numbers. Leaves alone those with weights or a bias that is not constant.
/// Keeps:  the meaning, over the reals, or with `exact` as it is, zero times infinity too; all
/// else.
Expected<Graph> with_phases(const Graph& graph, bool exact);

}  // namespace tessera::program
