#pragma once

#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

/// Per value, whether it is a compile-time constant: a constant, or computed from constants only.
std::vector<bool> constant_values(const Graph& graph);

}  // namespace tessera
