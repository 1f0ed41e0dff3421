#pragma once

#include <string>

#include "tessera/ir/graph.h"

namespace tessera::prove {

/// Two graphs side by side for Graphviz, their inputs shared.
std::string picture(const Graph& source, const Graph& target);

}  // namespace tessera::prove
