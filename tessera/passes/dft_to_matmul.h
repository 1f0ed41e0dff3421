#pragma once

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera::passes {

/// Replaces discrete Fourier transforms by multiplications with constant matrices of cosines and
/// sines:
///
///   dft(x)       =>  matmul(x, W)
///   stft(x, w)   =>  conv(x, W) {strides=[step]}
///
/// Needs:  static shapes. Leaves alone those of more than about a thousand points and those whose
///         length, axis or window is not constant.
/// Keeps:  the meaning over the reals; all other nodes.
Expected<Graph> dft_to_matmul(const Graph& graph);

}  // namespace tessera::passes
