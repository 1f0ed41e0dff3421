#pragma once

#include <string>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::program {

/// A node that the host interprets when the program runs.
struct HostCall {
  std::string graph;                 // of the node alone, as text; small constants are in it
  std::vector<ValueId> inputs = {};  // values that its inputs are given, in order
};
HostCall host_call(const Graph& graph, const GraphNode& node);

}  // namespace tessera::program
