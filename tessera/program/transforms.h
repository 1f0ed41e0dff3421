#pragma once

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera::program {

/// Fourier transforms as products with matrices of cosines and sines, which are computed once:
///
///   dft(x)       =>  matmul(x, W)
///   stft(x, w)   =>  conv(x, W) {strides=[step]}
///
/// Needs:  sizes that are numbers. Leaves alone those of more than about a thousand points and
///         those whose length, axis or window is not constant.
/// Keeps:  the meaning, over the reals; all else.
Expected<Graph> with_transforms(const Graph& graph);

}  // namespace tessera::program
