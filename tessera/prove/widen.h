#pragma once

#include "tessera/ir/graph.h"

namespace tessera::prove {

/// The graph with double in place of single precision: inputs, constants, and what operators are
/// told to make. Narrower types, which are functions of their own, stay.
///
/// A difference of two models that single precision alone makes is not there any more.
Graph widened(const Graph& graph);
Tensor widened(const Tensor& tensor);

}  // namespace tessera::prove
