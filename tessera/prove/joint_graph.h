#pragma once

#include <array>
#include <vector>

#include "tessera/prove/classes.h"

namespace tessera::prove {

/// Two graphs over the same inputs as one, in which congruent values are computed once. Nodes that
/// no output depends on are left out.
struct JointGraph {
  Graph graph = {};  // outputs: those of the source, then those of the target
  /// By value of each graph: the value of the joint graph, not present where it was left out.
  std::array<std::vector<ValueId>, 2> values = {};
  std::vector<std::array<bool, 2>> computed_by = {};  // by value of the joint graph
  /// By output: whether only integers lead to it in both graphs, so that nothing is rounded.
  std::vector<bool> is_integral = {};

  bool is_shared(ValueId joint) const {
    return computed_by[joint.index][0] && computed_by[joint.index][1];
  }
};
JointGraph joint_graph(const Graph& source, const Graph& target);

}  // namespace tessera::prove
