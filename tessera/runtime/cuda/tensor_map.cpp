#include "tessera/runtime/cuda/tensor_map.h"

#include <algorithm>

namespace tessera::runtime::cuda {

std::vector<int> axis_order(std::span<const std::int64_t> box, int column) {
  std::vector<int> order = {column};
  for (const bool is_extended : {true, false})
    for (int axis = static_cast<int>(box.size()); axis-- > 0;)
      if (axis != column && (box[static_cast<std::size_t>(axis)] > 1) == is_extended)
        order.push_back(axis);
  return order;
}

namespace {

/// Whether an order has each axis once, the column first.
bool is_order(const std::vector<int>& order, const TensorMap& map) {
  std::vector<int> sorted = order;
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int>(i)) return false;
  return order.size() == map.box.size() && order[0] == map.column;
}

}  // namespace

bool is_valid(const TensorMap& map) {
  constexpr std::size_t kMostAxes = 5;
  constexpr std::int64_t kMostInABox = 256;
  const std::size_t rank = map.box.size();
  const auto fits = [](std::int64_t extent) { return extent >= 1 && extent <= kMostInABox; };
  if (rank == 0 || rank > kMostAxes || !std::ranges::all_of(map.box, fits)) return false;
  if (!map.order.empty() && !is_order(map.order, map)) return false;
  if (map.word < 0 || map.column < 0 || static_cast<std::size_t>(map.column) >= rank) return false;
  if (map.width != 1 && map.width != 2 && map.width != 4) return false;
  const std::int64_t bytes = map.box[static_cast<std::size_t>(map.column)] * map.width;
  if (bytes != 32 && bytes != 64 && bytes != 128) return false;
  return map.extents.size() == map.strides.size() &&
         (map.extents.empty() || map.extents.size() == rank);
}

std::optional<MapShape> shape_of(const TensorMap& map, std::span<const std::uint64_t> words) {
  constexpr std::uint64_t kUnit = 16, kMostExtent = std::uint64_t{1} << 30,
                          kMostStride = std::uint64_t{1} << 40;
  const std::size_t rank = map.box.size(), first = static_cast<std::size_t>(map.word);
  const auto width = static_cast<std::uint64_t>(map.width);
  const bool made = !map.extents.empty();
  MapShape shape = {.base = words[first] + static_cast<std::uint64_t>(map.offset) * width,
                    .extents = {},
                    .strides = {},
                    .box = {}};
  if (shape.base % kUnit != 0) return std::nullopt;
  const auto add = [&](std::size_t axis) {
    const std::uint64_t extent =
        made ? static_cast<std::uint64_t>(map.extents[axis]) : words[first + 1 + axis];
    const std::uint64_t stride = width * (made ? static_cast<std::uint64_t>(map.strides[axis])
                                               : words[first + 1 + rank + axis]);
    if (extent == 0 || extent > kMostExtent) return false;
    shape.extents.push_back(extent);
    shape.box.push_back(static_cast<std::uint32_t>(map.box[axis]));
    if (axis == static_cast<std::size_t>(map.column)) return true;
    shape.strides.push_back(stride);
    return stride != 0 && stride % kUnit == 0 && stride < kMostStride;
  };
  std::vector<int> order = map.order;
  if (order.empty()) {
    order.push_back(map.column);
    for (int axis = static_cast<int>(rank); axis-- > 0;)
      if (axis != map.column) order.push_back(axis);
  }
  for (const int axis : order)
    if (!add(static_cast<std::size_t>(axis))) return std::nullopt;
  return shape;
}

}  // namespace tessera::runtime::cuda
