#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/program/group.h"

namespace tessera::program {

/// In which order the axes of a tensor lie in memory: axis i there is axis order[i] of the tensor.
using Order = std::vector<int>;

Order row_major(std::size_t rank);
/// The batch, the axes of the image, the channels.
Order channels_last(std::size_t rank);

/// Whether two orders put the elements at the same places; axes of one position do not matter.
bool same_places(std::span<const std::int64_t> shape, const Order& a, const Order& b);

/// The order of a transpose's result where its elements stay in their places.
Order transposed(const Order& order, std::span<const int> perm);

/// The sizes in memory.
std::vector<std::int64_t> in_memory(std::span<const std::int64_t> shape, const Order& order);

/// The order that those who read a value would like best, by value: views want rows, images want
/// their channels last, and what is computed element by element wants what its readers want.
std::vector<std::optional<Order>> wishes(const Graph& graph, const Grouping& grouping);

}  // namespace tessera::program
