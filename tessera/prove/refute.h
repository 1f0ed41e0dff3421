#pragma once

#include "tessera/ir/graph.h"
#include "tessera/prove/verdict.h"

namespace tessera::prove {

/// Runs what refutes an equality again: whether the graphs still differ there.
Expected<bool> replay(const Graph& source, const Graph& target, const Refuted& refuted);

}  // namespace tessera::prove
