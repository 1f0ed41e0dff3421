#pragma once

#include <string>
#include <vector>

#include "bench/gpu/benches.h"
#include "tessera/ir/graph.h"
#include "tessera/program/assemble.h"
#include "tessera/support/expected.h"

namespace tessera {

/// What the compiler makes of operators in the midst of a model of f16, where tensors lie as
/// kernels like them: with its own choice of tiles, parts and kernels.
Expected<program::Draft> plan_of(const Expected<Graph>& graph, const machine::Machine& gpu);

/// Its kernels, one after the other.
std::vector<Step> steps_of(const program::Draft& draft);

/// All of them as one bench; its name goes on with how they are computed.
Bench in_model(std::string name, const Expected<Graph>& graph, double amount, const char* unit);

}  // namespace tessera
