#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/program/group.h"

namespace tessera::program {

struct NodeClass {
  NodeKind kind = NodeKind::Host;
  tile::Stages stages = {};  // of those that are machine code
  ValueId source = {};   // of a View, Transpose or Move: the input whose elements the result has
  std::string why = {};  // of Host: the reason
};
NodeClass classify(const Graph& graph, const GraphNode& node);

/// Where the elements begin in the operand, row by row, if they are some of its, one after the
/// other.
std::optional<std::int64_t> piece_of(const tile::Stage& stage);

/// Of a transpose: the axis of the operand that each axis of the result is.
std::optional<std::vector<int>> permutation_of(const tile::Stage& stage);

/// Whether a fold runs over windows of its operand: positions of both are added up.
bool is_windowed(const tile::Stage& stage);

/// Of a contraction: how often each element of the operand is read, if that is once for every
/// position along axes of the result that the operand does not have.
std::optional<std::int64_t> columns_of(const tile::Stage& stage, const std::string& operand);

/// Of a reduction: the axes of its operand that are folded, and the operand.
struct ReductionOf {
  std::string operand;
  std::vector<bool> folded = {};  // by axis of the operand
};
std::optional<ReductionOf> reduction_of(const tile::Stage& stage);

}  // namespace tessera::program
