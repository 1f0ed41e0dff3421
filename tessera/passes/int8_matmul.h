#pragma once

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Computes convolutions and matrix multiplications of dequantized 8-bit operands on the integers:
///
///   conv(dequantize(x, s, z), dequantize(w, t, u)) + b
///     =>  f32(conv_integer(x, w, z, u)) * (s * t) + b
///
/// and matmul and gemm likewise. Equal over the reals: the sum rounds once, not for every term.
///
/// Keeps:  contractions of few terms or columns, where int8 dot instructions do not pay.
/// Leaves: no dequantization without a use.
Graph int8_matmul(const Graph& graph);

}  // namespace tessera::passes
