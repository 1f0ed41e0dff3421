#include "tessera/runtime/cuda/tensor_map.h"

#include <algorithm>

namespace tessera::runtime::cuda {

bool is_valid(const TensorMap& map) {
  constexpr std::size_t kMostAxes = 5;
  constexpr std::int64_t kMostInABox = 256;
  const std::size_t rank = map.box.size();
  const auto fits = [](std::int64_t extent) { return extent >= 1 && extent <= kMostInABox; };
  if (rank == 0 || rank > kMostAxes || !std::ranges::all_of(map.box, fits)) return false;
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
  if (!add(static_cast<std::size_t>(map.column))) return std::nullopt;
  for (std::size_t axis = rank; axis-- > 0;)
    if (axis != static_cast<std::size_t>(map.column) && !add(axis)) return std::nullopt;
  return shape;
}

}  // namespace tessera::runtime::cuda
