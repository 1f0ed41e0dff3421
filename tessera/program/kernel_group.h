#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "tessera/lower/group.h"
#include "tessera/program/launches.h"
#include "tessera/program/places.h"

namespace tessera::program {

/// Fusion group as stages over named tensors, before layouts are applied: all tensors are row-major
/// and have the dtype of their type.
struct KernelGroup {
  lower::Group group = {};
  ValueIds ids = {};                 // values of the tensors
  std::set<std::string> reads = {};  // tensors that are not computed in the group
  std::string what = {};             // the operators, for reports
  double flops = 0;
};
/// Kernel group of these nodes, which include those of the node group.
Expected<KernelGroup> kernel_group(const Graph& graph, const Grouping& grouping,
                                   const NodeGroup& node_group,
                                   const std::vector<std::size_t>& nodes);

/// Nodes of a group with the data movement that is fused into them, in order: that of operands that
/// are not in memory.
std::vector<std::size_t> with_moves(const Graph& graph, const Decisions& decisions,
                                    const NodeGroup& group, const Places& places);

/// Changes the storage dtype of a tensor of a group: adds casts at loads and stores.
void set_dtype(tile::Stages& stages, const std::string& tensor, DType dtype);

}  // namespace tessera::program
