#include "tessera/runtime/cuda/tensor_map.h"

namespace tessera::runtime::cuda {

std::optional<MapShape> shape_of(const TensorMap& map, std::span<const std::uint64_t> words) {
  constexpr std::uint64_t kUnit = 16, kMostExtent = std::uint64_t{1} << 30,
                          kMostStride = std::uint64_t{1} << 40;
  const std::size_t rank = map.box.size(), first = static_cast<std::size_t>(map.word);
  const auto width = static_cast<std::uint64_t>(map.width);
  MapShape shape = {.base = words[first], .extents = {}, .strides = {}, .box = {}};
  if (shape.base % kUnit != 0) return std::nullopt;
  const auto add = [&](std::size_t axis) {
    const std::uint64_t extent = words[first + 1 + axis];
    const std::uint64_t stride = words[first + 1 + rank + axis] * width;
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
