#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tessera/interp/interp.h"
#include "tessera/ir/graph.h"

namespace tessera::prove {

/// Exclusive upper bounds of the integers that are drawn, by input.
using InputRanges = std::vector<std::int64_t>;

/// Calls `attempt` with ranges of the integer inputs until it returns true, the most common ones
/// first: some models take token numbers, some truth values. If none of these is accepted, ranges
/// are fitted: each input gets the range with which the most nodes of the graph run before one
/// rejects its operands. `types` are those of the inputs, all sizes known. Returns whether an
/// attempt returned true.
bool for_each_range(const Graph& graph, const std::vector<Type>& types, const interp::Options& run,
                    const std::function<bool(const InputRanges&)>& attempt);

}  // namespace tessera::prove
