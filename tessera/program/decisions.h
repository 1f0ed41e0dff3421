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

/// Fusion, layout and storage decisions about the nodes and values of a graph.
struct Decisions {
  Grouping grouping = {};                                  // fusion groups
  std::vector<std::optional<AxisOrder>> orders = {};       // by value: preferred layout
  std::vector<DType> storage = {};                         // by value: the dtype in memory
  std::vector<std::optional<std::size_t>> producers = {};  // by value: the node that computes it

  /// Value at the origin of a chain of views.
  ValueId behind_views(ValueId value) const;
};

Decisions decide(const Graph& graph, const CompileOptions& options);

/// Storage dtype of intermediate tensors, by value. On a GPU, f32 tensors are stored in
/// CompileOptions::contraction_dtype: kernels cast on store and load. bf16, which has few bits, is
/// used for operands of large contractions and for tensors that are expensive to read.
std::vector<DType> storage_types(const Graph& graph, const Decisions& decisions,
                                 const CompileOptions& options);

/// Estimated multiplications and additions of a stage.
double flops_of(const tile::Stage& stage);

}  // namespace tessera::program
