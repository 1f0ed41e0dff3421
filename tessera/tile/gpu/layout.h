#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "tessera/tile/type.h"

namespace tessera::tile::gpu {

/// Tile index bit that a register bit or thread bit maps to. Axis -1 means none: threads that
/// differ in this bit hold copies of the same elements.
struct IndexBit {
  int axis = -1;
  int bit = 0;
  auto operator<=>(const IndexBit&) const = default;
};

/// Distributed layout of a tile: which element each register of each thread of a block holds, as a
/// linear map on bits (compare Triton's linear layouts):
///
///   f16[1, 1024] by 32 threads, 8 in a row:
///     register  bits 0-2: column bits 0-2    bits 3, 4: column bits 8, 9
///     thread    bits 0-4: column bits 3-7
///
/// Extents are rounded up to powers of two; elements beyond the tile are padding with unspecified
/// values. Every index bit is mapped once, so an index is the sum of a thread part and a register
/// part. The first five thread bits are the lane in a warp.
class Layout {
 public:
  Layout() = default;  // of a scalar
  Layout(int rank, std::vector<IndexBit> registers, std::vector<IndexBit> threads)
      : rank_(rank), registers_(std::move(registers)), threads_(std::move(threads)) {}

  /// Blocked layout: each thread holds runs of `run` contiguous elements along the first axis of
  /// `order`. The lanes of a warp follow in that order of axes, fastest first, so that accesses are
  /// coalesced; warps are placed along the slowest axes first, so that a row stays within a warp
  /// where there are enough rows.
  struct Blocked {
    Extents shape;
    std::vector<int> order;
    int threads = 32, run = 1;
    int lanes = 32;  // at most, along the first axis, where the others have enough elements
  };
  static Layout blocked(const Blocked& blocked);

  /// Accumulator layout of mma.m16n8: 16 by 8 patches, then the repetitions of a warp, then the
  /// warps, which are placed along the rows first if `rows_first`, else as square as possible.
  struct Matrix {
    Extents shape;
    int threads = 32;
    bool rows_first = false;
  };
  static Layout matrix(const Matrix& matrix);
  /// Accumulator layout of wgmma.m64: each warpgroup holds 64 rows by all columns. Warpgroups are
  /// placed along the rows first; where they outnumber the blocks of rows, they split the columns.
  static Layout warpgroups(const Extents& shape, int threads);
  /// Layout with consecutive elements along an axis in the registers of a thread first, then across
  /// lanes, then across warps.
  static Layout in_order(const Extents& shape, int axis, int threads);
  /// Accumulator layout of matmuls without tensor cores: small squares per thread.
  static Layout patches(const Extents& shape, int threads);

  int rank() const { return rank_; }
  const std::vector<IndexBit>& register_bits() const { return registers_; }
  const std::vector<IndexBit>& thread_bits() const { return threads_; }
  int registers() const { return 1 << registers_.size(); }
  /// Whether several threads hold an element. One of them stores it, all of them load it.
  bool replicated() const;

  /// Number of indices along an axis, padded: a power of two, at least the extent of the tile.
  std::int64_t extent(int axis) const;
  /// Register part of the index along an axis.
  std::int64_t offset(int axis, int reg) const;
  /// Number of consecutive registers, from each multiple of it on, that hold consecutive elements
  /// along an axis: a power of two.
  int run(int axis) const;

  /// Layout of a reduction along an axis: threads along it hold copies of the result.
  Layout without(int axis) const;
  /// Layout with the axis reduced to extent 1; layout with an axis of extent 1 inserted.
  Layout collapsed(int axis) const;
  Layout inserted(int axis) const;
  /// Layout of a transpose: axis i of the result is axis order[i].
  Layout permuted(const std::vector<std::int64_t>& order) const;

  auto operator<=>(const Layout&) const = default;

 private:
  int rank_ = 0;
  std::vector<IndexBit> registers_, threads_;
};

/// Whether conversion between the layouts only renames registers, without exchange between threads.
bool renames(const Layout& from, const Layout& to);

/// Number of thread bits that are the lane in a warp.
constexpr int kLaneBits = 5;
/// Number of thread bits within a warpgroup (four warps, the unit of wgmma).
constexpr int kGroupBits = 7;

/// Number of index bits of an extent rounded up to a power of two; held_extent is that power, at
/// least `least`.
int index_bits(std::int64_t extent);
inline std::int64_t held_extent(std::int64_t extent, std::int64_t least = 1) {
  return std::max(least, std::int64_t{1} << index_bits(extent));
}

}  // namespace tessera::tile::gpu
