#pragma once

#include "tessera/ir/graph.h"

namespace tessera::program {

/// Products of numbers that are integers of 8 bits and scales become products of the integers:
///
///   conv(dequantize(x, s, z), dequantize(w, t, u)) + b
///     =>  f32(conv_integer(x, w, z, u)) * (s * t) + b
///
/// and matmul and gemm likewise. Equal over the reals: the sum rounds once, not for every term.
///
/// Keeps:  products of few terms, which are no matter of instructions for bytes.
/// Leaves: no dequantization that nothing reads.
Graph with_integer_products(const Graph& graph);

}  // namespace tessera::program
