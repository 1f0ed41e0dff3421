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
  /// Of a view that the kernel makes itself of that base: so many elements behind it, with these
  /// extents and strides. Else empty.
  std::int64_t offset = 0;
  std::vector<std::int64_t> extents = {}, strides = {};
  bool operator==(const TensorMap&) const = default;

  /// Words that are read, from `word` on.
  std::size_t words() const { return extents.empty() ? 1 + 2 * box.size() : 1; }
};

inline constexpr std::size_t kMostMaps = 8;  // of a kernel

/// Whether a map is one that the GPU may have: up to five axes, of boxes of up to 256 elements.
bool is_valid(const TensorMap& map);

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
