#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tessera::runtime::cuda {

/// TMA tensor map of a kernel: a box of a view that the GPU copies by one instruction. The launcher
/// encodes it from the words of the launch.
struct TensorMap {
  int word = 0;    // first word of the view: its base, its extents, its strides in elements
  int column = 0;  // the contiguous axis
  int width = 2;   // bytes per element
  /// Extents of the box. Along the column they are 32, 64 or 128 bytes, which are swizzled in
  /// chunks of 16 by the row number.
  std::vector<std::int64_t> box = {};
  /// Static view that the kernel makes of that base: offset in elements, extents and strides. Else
  /// empty.
  std::int64_t offset = 0;
  std::vector<std::int64_t> extents = {}, strides = {};
  /// The axes from the innermost on; empty: the column, then the others from the last to the first.
  std::vector<int> order = {};
  bool operator==(const TensorMap&) const = default;

  /// Number of words that are read, from `word` on.
  std::size_t words() const { return extents.empty() ? 1 + 2 * box.size() : 1; }
};

inline constexpr std::size_t kMostMaps = 8;  // per kernel

/// An order of the axes for boxes of matrices among axes of extent 1, such as the rows of one head:
/// the column, the other axes that the box extends along, and those that it does not.
std::vector<int> axis_order(std::span<const std::int64_t> box, int column);

/// Whether the hardware supports the map: up to five axes, boxes of up to 256 elements along each.
bool is_valid(const TensorMap& map);

/// Arguments of cuTensorMapEncodeTiled, innermost axis first.
struct MapShape {
  std::uint64_t base = 0;
  std::vector<std::uint64_t> extents = {}, strides = {};  // strides in bytes, from the second on
  std::vector<std::uint32_t> box = {};
};
/// Encoding arguments of a map; none where the hardware does not support them: addresses or strides
/// that are no multiples of 16 bytes, extents of 0 or past 2^30.
std::optional<MapShape> shape_of(const TensorMap& map, std::span<const std::uint64_t> words);

/// CUtensorMap: encoded by the driver.
struct alignas(64) EncodedMap {
  std::array<std::uint64_t, 16> words = {};
};

}  // namespace tessera::runtime::cuda
