#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/program/compile.h"
#include "tessera/program/group.h"
#include "tessera/program/layout.h"
#include "tessera/program/values.h"

namespace tessera::program {

/// What is decided about the nodes and values of a graph before steps are made of it.
struct Decisions {
  Grouping grouping = {};                                  // nodes that are computed together
  std::vector<std::optional<Order>> orders = {};           // by value: the order readers want
  std::vector<DType> storage = {};                         // by value: the dtype in memory
  std::vector<std::optional<std::size_t>> producers = {};  // by value: the node that computes it

  /// The value that a chain of views shows.
  ValueId behind_views(ValueId value) const;
};

Decisions decide(const Graph& graph, const CompileOptions& options);

/// The dtype in which each value is stored where kernels alone see it, by value. On a GPU, tensors
/// of f32 are stored in the type of products: a kernel casts when it stores and when it loads.
/// The few bits of bf16 are for operands of large products, and for tensors that take long to read.
std::vector<DType> storage_types(const Graph& graph, const Decisions& decisions,
                                 const CompileOptions& options);

/// Estimated multiplications and additions of a stage.
double flops_of(const tile::Stage& stage);

}  // namespace tessera::program
