#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"
#include "tessera/tile/schedule.h"

namespace tessera::program {

/// Classification of a node by its access pattern, which decides how it is fused.
enum class NodeKind : std::uint8_t {
  View,         // another shape of the same elements in row-major order: reshape, squeeze
  Transpose,    // permutation of axes
  Move,         // strided access to one input: slice
  Map,          // elementwise: add, relu
  Alone,        // any other access, not fused: concat, gather, pad, resize
  Scatter,      // writes at computed positions; all tensors row-major
  Reduction,    // reduction along whole axes: reduce_sum
  Window,       // any other reduction: max_pool, depthwise convolution
  Contraction,  // sum of products over an axis of both operands: matmul, conv
  Host,         // no code generation: interpreter fallback
};

/// Fusion group: nodes that are lowered together.
struct NodeGroup {
  /// Kind of the anchor node. A contraction with reductions is attention.
  NodeKind kind = NodeKind::Map;
  std::vector<std::size_t> nodes = {};  // of the graph, in order
  std::vector<ValueId> results = {};    // values with uses outside
  bool spatial = false;                 // images: channels-last layout
  bool planar = false;                  // images of few channels: row-major layout
  bool filters = false;                 // spatial, with filters as the result: HWIO layout
  std::vector<NodeGroup> parts = {};    // of attention: the groups that were merged
  std::string why = {};                 // of Host: the reason
};

/// Partition of the nodes of a graph into fusion groups.
struct Grouping {
  std::vector<NodeGroup> groups = {};      // in topological order
  std::vector<NodeKind> kinds = {};        // by node
  std::vector<tile::Stages> stages = {};   // by node; none for views and host nodes
  std::vector<ValueId> sources = {};       // by node: operand of a view, transpose or move
  std::vector<std::string> why_host = {};  // by node
};

/// Operator fusion: elementwise consumers join the group of their producer if it has no other use;
/// reductions join their consumers; two matmuls with a softmax in between become one group
/// (attention). Views, transposes and strided moves are in no group: they are fused into each of
/// their consumers.
///
/// With `recomputes_maps`, elementwise operators whose operands take no more memory traffic than
/// their result are in no group either, where groups of such operators and of reductions read them:
/// each of these computes them again, as it does strided moves.
///
/// Needs: no composites; static shapes where shapes are known at all.
struct GroupingOptions {
  bool recomputes_maps = false;
};
Grouping group_nodes(const Graph& graph, const GroupingOptions& options = {});

/// Whether the stage reads the tensor out of bounds, with a padding value.
bool reads_beyond(const tile::Stage& stage, const std::string& tensor);

}  // namespace tessera::program
