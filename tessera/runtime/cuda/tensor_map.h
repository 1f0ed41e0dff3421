#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tessera::runtime::cuda {

/// A box of a view that a kernel has the GPU copy at once. Who launches describes the view to the
/// GPU, from the words of the launch.
struct TensorMap {
  int word = 0;    // where the view begins: its base, its extents, its strides in elements
  int column = 0;  // the axis whose neighbours lie side by side
  int width = 2;   // bytes of an element
  /// Elements along each axis. Along the column they are 32, 64 or 128 bytes, whose chunks of 16
  /// are exchanged by the number of the row.
  std::vector<std::int64_t> box = {};
  bool operator==(const TensorMap&) const = default;
};

/// What the driver is told of a view, innermost axis first.
struct MapShape {
  std::uint64_t base = 0;
  std::vector<std::uint64_t> extents = {}, strides = {};  // strides in bytes, from the second on
  std::vector<std::uint32_t> box = {};
};
/// None where the GPU has no such maps: places or strides that are no multiples of 16 bytes,
/// extents of nothing or past 2^30.
std::optional<MapShape> shape_of(const TensorMap& map, std::span<const std::uint64_t> words);

/// As the driver writes it.
struct alignas(64) EncodedMap {
  std::array<std::uint64_t, 16> words = {};
};

}  // namespace tessera::runtime::cuda
