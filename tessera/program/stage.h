#pragma once

#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/ir/infer.h"
#include "tessera/support/expected.h"
#include "tessera/tile/schedule.h"

namespace tessera::program {

/// What a value of the graph is called in stages.
std::string tensor_name(ValueId value);

/// What is known of a value: its type, and the content of small constants.
Known known_of(const Graph& graph, ValueId value);

/// The results of a core operator as stages whose sizes are numbers, over tensors called by
/// tensor_name. Names of axes are different in every node.
Expected<tile::Stages> stages_of_node(const Graph& graph, const GraphNode& node);

}  // namespace tessera::program
