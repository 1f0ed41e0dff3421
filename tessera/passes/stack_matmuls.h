#pragma once

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Horizontal fusion: matrix multiplications of one operand with several constant matrices of one
/// size (queries, keys and values of attention), each with or without a constant bias row, become
/// one batched multiplication:
///
///   a = x . u + p,  b = x . v + q   =>   ab[i] = x . (u, v)[i] + (p, q)[i],  a = ab[0],  b = ab[1]
///
/// so that one kernel fills a GPU.
///
/// Keeps: the meaning over the reals; graph outputs and all other nodes as they are.
Graph stack_matmuls(const Graph& graph);

}  // namespace tessera::passes
