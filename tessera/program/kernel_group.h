#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "tessera/lower/group.h"
#include "tessera/program/launches.h"
#include "tessera/program/places.h"

namespace tessera::program {

/// Nodes that are computed together as stages over named tensors, before layouts are chosen: all
/// tensors lie row by row, in the dtype of their type.
struct KernelGroup {
  lower::Group group = {};
  ValueIds ids = {};                 // what the tensors are
  std::set<std::string> reads = {};  // tensors that are not computed in the group
  std::string what = {};             // the operators, for reports
  double flops = 0;
};
/// The group of these nodes, among which are those of the node group.
Expected<KernelGroup> kernel_group(const Graph& graph, const Grouping& grouping,
                                   const NodeGroup& node_group,
                                   const std::vector<std::size_t>& nodes);

/// The nodes of a group and the data movement that they read, in order: what has no place of its
/// own is computed where it is read.
std::vector<std::size_t> with_moves(const Graph& graph, const Decisions& decisions,
                                    const NodeGroup& group, const Places& places);

/// A tensor of a group in memory as another dtype than its type says: casts at loads and stores.
void set_dtype(tile::Stages& stages, const std::string& tensor, DType dtype);

}  // namespace tessera::program
