#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::prove {

/// The graph with double in place of single precision: inputs, constants, and what operators are
/// told to make. Narrower types, which are functions of their own, stay.
///
/// A difference of two models that single precision alone makes is not there any more.
Graph widened(const Graph& graph);
/// The same with other numbers in place of constants, by value, where there are any.
struct Widened {
  Graph graph = {};
  std::vector<ValueId> values = {};  // by value of the graph that was widened
};
Widened widened(const Graph& graph, std::span<const std::optional<Tensor>> constants);
Tensor widened(const Tensor& tensor);

}  // namespace tessera::prove
