#pragma once

#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/ir/infer.h"
#include "tessera/support/expected.h"
#include "tessera/tile/schedule.h"

namespace tessera::program {

/// Name of a value of the graph in stages.
std::string tensor_name(ValueId value);

/// Static information about a value: its type, and the content of small constants.
ValueInfo value_info(const Graph& graph, ValueId value);

/// Stages of the results of a core operator with static shapes, over tensors named by tensor_name.
/// Names of axes are unique to the node.
Expected<tile::Stages> stages_of_node(const Graph& graph, const GraphNode& node);

}  // namespace tessera::program
