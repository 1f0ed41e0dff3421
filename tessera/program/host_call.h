#pragma once

#include <string>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::program {

/// Interpreter fallback: a node that the host evaluates at run time.
struct HostCall {
  std::string graph;                 // of the node alone, as text with small constants
  std::vector<ValueId> inputs = {};  // arguments, in order
};
HostCall host_call(const Graph& graph, const GraphNode& node);

}  // namespace tessera::program
