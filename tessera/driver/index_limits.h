#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// Per input of a graph with inputs of these shapes the size of the smallest axis that its elements
/// index, as they are or moved about and converted; kNoLimit for one that is no index, or where
/// that cannot be told.
std::vector<std::int64_t> index_limits(
    const Graph& graph, const std::vector<std::optional<std::vector<std::int64_t>>>& shapes);

}  // namespace tessera
