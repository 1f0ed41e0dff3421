#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/program/group.h"

namespace tessera::program {

/// Classification of a node for fusion.
struct NodeClass {
  NodeKind kind = NodeKind::Host;
  tile::Stages stages = {};  // of kinds that are compiled
  ValueId source = {};   // of a View, Transpose or Move: the input whose elements the result has
  std::string why = {};  // of Host: the reason
};
NodeClass classify(const Graph& graph, const GraphNode& node);

/// Row-major offset in the operand, if the result is a contiguous piece of it.
std::optional<std::int64_t> piece_of(const tile::Stage& stage);

/// Permutation of a transpose: the axis of the operand for each axis of the result.
std::optional<std::vector<int>> permutation_of(const tile::Stage& stage);

/// A tensor with a box of it replaced by another tensor.
struct BoxUpdate {
  std::string whole, update;
  std::vector<std::int64_t> start = {};  // of update, by axis of whole; may lie outside
};
std::optional<BoxUpdate> box_update_of(const tile::Stage& stage);

/// Whether a reduction is over windows of its operand, as in pooling and convolution.
bool is_windowed(const tile::Stage& stage);

/// Whether a windowed reduction sums over the images of a batch, so that its result is a filter:
/// the gradient of a convolution's weights.
bool is_filter(const tile::Stage& stage);

/// Reuse factor of an operand of a contraction: the number of times each element is read, if that
/// is once for every position along the axes of the result that the operand does not have.
std::optional<std::int64_t> columns_of(const tile::Stage& stage, const std::string& operand);

/// Operand of a reduction, and the axes that are reduced.
struct ReductionOf {
  std::string operand;
  std::vector<bool> folded = {};  // by axis of the operand
};
std::optional<ReductionOf> reduction_of(const tile::Stage& stage);

}  // namespace tessera::program
