#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

/// Limit of an input that is not used as an index.
inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// Upper bounds for index inputs: per input of a graph on these shapes, the size of the smallest
/// axis that its elements index, directly or after data movement and casts; kNoLimit for an input
/// that is not an index, or where this is unknown.
std::vector<std::int64_t> index_limits(
    const Graph& graph, const std::vector<std::optional<std::vector<std::int64_t>>>& shapes);

}  // namespace tessera
