#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/program/group.h"

namespace tessera::program {

/// Memory layout of a tensor as a permutation: axis i in memory is axis order[i] of the tensor.
using AxisOrder = std::vector<int>;

AxisOrder row_major(std::size_t rank);
/// Channels last (NHWC): batch, spatial axes, channels.
AxisOrder channels_last(std::size_t rank);

/// Filters last (HWIO): spatial axes, channels, filters.
AxisOrder filters_last(std::size_t rank);

/// Whether two layouts are the same for a tensor of this shape: axes of size 1 do not matter.
bool same_places(std::span<const std::int64_t> shape, const AxisOrder& a, const AxisOrder& b);

/// Layout of the result of a transpose that moves no data.
AxisOrder transposed(const AxisOrder& order, std::span<const int> perm);

/// Layout of the result of a reshape that moves no data; nothing where elements have to move. Axes
/// that are merged or split have to be neighbours in memory.
std::optional<AxisOrder> reshaped(const AxisOrder& order, std::span<const std::int64_t> from,
                                  std::span<const std::int64_t> to);

/// Layout of a result of this shape that has all axes of an operand but the folded ones, in the
/// same order; nothing if it has other axes.
std::optional<AxisOrder> without_folded(const AxisOrder& order, const std::vector<bool>& folded,
                                        std::span<const std::int64_t> shape);

/// Shape in memory order.
std::vector<std::int64_t> in_memory(std::span<const std::int64_t> shape, const AxisOrder& order);

/// Layout that the consumers of a value prefer, by value: image operators channels last, matmuls
/// with weights row-major, so that the weights are packed and not the activations; elementwise
/// operators, transposes and reshapes propagate the preference of their consumers. A reshape that
/// cannot propagate it prefers row-major. A matmul with weights, with what is fused into it, is
/// row-major in any case where its consumers prefer an innermost axis of fewer than `lanes`
/// elements: its columns fill vectors, which the few elements would not.
std::vector<std::optional<AxisOrder>> preferred_orders(const Graph& graph, const Grouping& grouping,
                                                       std::int64_t lanes);

}  // namespace tessera::program
