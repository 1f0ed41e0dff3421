#pragma once

#include <algorithm>
#include <cstdint>

namespace tessera::tile::gpu {

/// Of what is taken of shared memory; wgmma's swizzles repeat after so many bytes.
constexpr std::int64_t kSharedAlignment = 1024;
constexpr std::int64_t shared_room(std::int64_t bytes) {
  return (bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
}

/// Bytes of memory that one access takes at most; what cp.async writes and ldmatrix reads at once.
constexpr std::int64_t kChunk = 16;
constexpr std::int64_t kPanel = 128;

/// How an operand of a product lies in shared memory: `rows` rows of `columns` elements, in panels
/// of up to 128 bytes of each row, one panel after the other. The chunks of 16 bytes of a panel are
/// exchanged within a row so that eight rows of one column lie in different banks: the swizzles of
/// 32, 64 and 128 bytes that wgmma knows, if the first is at a multiple of kSharedAlignment.
struct Panels {
  int column_axis = 1;  // of the tile: neighbours along it lie in a row
  std::int64_t rows = 0, columns = 0;
  int width = 2;

  std::int64_t row_bytes() const { return columns * width; }
  std::int64_t bytes() const { return rows * row_bytes(); }
  std::int64_t panel_width() const { return std::min(row_bytes(), kPanel); }
  std::int64_t panel_bytes() const { return rows * panel_width(); }
  /// Bytes from the beginning to a row and an element of it that begins a chunk, before the
  /// exchange.
  std::int64_t offset(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = column * width;
    return at / panel_width() * panel_bytes() + row * panel_width() + at % panel_width();
  }
};

}  // namespace tessera::tile::gpu
