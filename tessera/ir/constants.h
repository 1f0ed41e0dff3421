#pragma once

#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

/// By value: whether it is known at compile time, as a constant or computed from constants alone.
std::vector<bool> constant_values(const Graph& graph);

}  // namespace tessera
