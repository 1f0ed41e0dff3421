#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"
#include "tessera/tile/schedule.h"

namespace tessera::program {

/// What a node is to those who put nodes together.
enum class NodeKind : std::uint8_t {
  View,         // other sizes for the same elements in the same order: reshape, squeeze
  Transpose,    // the same elements, the axes in another order
  Move,         // each element is one of the input's, at a position that moves evenly: slice
  Map,          // each element is computed of elements at its own position: add, relu
  Alone,        // elements from anywhere: concat, gather, pad, resize
  Scatter,      // elements say where they go; all tensors row by row
  Reduction,    // a fold along whole axes: reduce_sum
  Window,       // any other fold: max_pool, convolutions of single channels
  Contraction,  // sums of products that run through both factors: matmul, conv
  Host,         // what has no form as machine code
};

/// Nodes that are computed together.
struct NodeGroup {
  /// The kind of the node that decides how. Contraction with reductions is attention.
  NodeKind kind = NodeKind::Map;
  std::vector<std::size_t> nodes = {};  // of the graph, in order
  std::vector<ValueId> results = {};    // what others use
  bool spatial = false;                 // images: the channels come last in memory
  std::vector<NodeGroup> parts = {};    // of attention: the groups that it is made of
  std::string why = {};                 // of Host
};

struct Grouping {
  std::vector<NodeGroup> groups = {};     // in an order in which they can be computed
  std::vector<NodeKind> kinds = {};       // by node
  std::vector<tile::Stages> stages = {};  // by node: what it computes; none of views and hosts
  std::vector<ValueId> sources = {};      // by node: what a view, transpose or move has elements of
  std::vector<std::string> why_host = {};  // by node
};

/// Puts the nodes of a graph together: what is computed of the elements of one result goes with the
/// group that makes it, if nobody else needs it; reductions go with what is computed of them;
/// a softmax between two products of matrices makes one group of all. Views, transposes and moves
/// are in no group: a move is computed where it is read.
///
/// Needs: no composites; sizes that are numbers, as far as they are known at all.
Grouping group_nodes(const Graph& graph);

/// Whether the stage reads the tensor with something in place of what is out of range.
bool reads_beyond(const tile::Stage& stage, const std::string& tensor);

}  // namespace tessera::program
