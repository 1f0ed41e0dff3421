#pragma once

#include <algorithm>
#include <cstdint>

namespace tessera::tile::gpu {

/// Alignment of shared-memory buffers: wgmma's swizzle patterns repeat after this many bytes.
constexpr std::int64_t kSharedAlignment = 1024;
constexpr std::int64_t shared_room(std::int64_t bytes) {
  return (bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
}

/// Bytes of the widest memory access: the unit of cp.async, ldmatrix and the swizzles.
constexpr std::int64_t kChunk = 16;
constexpr std::int64_t kPanel = 128;

/// Swizzled shared-memory layout of a matmul operand: `rows` rows of `columns` elements, stored as
/// panels of up to 128 bytes of each row, one panel after the other. The 16-byte chunks within a
/// row of a panel are permuted by the row number, so that eight rows of one column fall into
/// different banks: the 32-, 64- and 128-byte swizzles of wgmma, where the buffer is aligned to
/// kSharedAlignment.
struct Panels {
  int column_axis = 1;  // axis of the tile that is contiguous in a row
  std::int64_t rows = 0, columns = 0;
  int width = 2;

  std::int64_t row_bytes() const { return columns * width; }
  std::int64_t bytes() const { return rows * row_bytes(); }
  std::int64_t panel_width() const { return std::min(row_bytes(), kPanel); }
  std::int64_t panel_bytes() const { return rows * panel_width(); }
  /// Byte offset of an element that begins a chunk, before swizzling.
  std::int64_t offset(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = column * width;
    return at / panel_width() * panel_bytes() + row * panel_width() + at % panel_width();
  }
};

}  // namespace tessera::tile::gpu
