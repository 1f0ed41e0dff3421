#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "tessera/tile/type.h"

namespace tessera::tile::gpu {

/// Which bit of which index of a tile a bit of the hardware stands for; axis -1: none, so that the
/// threads that differ in this bit hold the same elements.
struct IndexBit {
  int axis = -1;
  int bit = 0;
  auto operator<=>(const IndexBit&) const = default;
};

/// Which element of a tile each register of each thread of a block holds, bit by bit:
///
///   f16[1, 1024] by 32 threads, 8 in a row:
///     register  bits 0-2: column bits 0-2    bits 3, 4: column bits 8, 9
///     thread    bits 0-4: column bits 3-7
///
/// Extents are rounded up to powers of two: elements beyond the tile are held too and mean nothing.
/// Every index bit stands in one place, so an index is a part of the thread plus a part of the
/// register. The first five thread bits are the lane in a warp.
class Layout {
 public:
  Layout(int rank, std::vector<IndexBit> registers, std::vector<IndexBit> threads)
      : rank_(rank), registers_(std::move(registers)), threads_(std::move(threads)) {}

  /// The tile cut into runs of `run` elements along the first axis of `order`. The lanes of a warp
  /// take runs in that order of axes, fastest first, so that a warp reads neighbours; the warps go
  /// along the slowest axes first, so that a row stays in a warp where there are rows enough.
  struct Blocked {
    Extents shape;
    std::vector<int> order;
    int threads = 32, run = 1;
  };
  static Layout blocked(const Blocked& blocked);

  /// The accumulator of mma.m16n8: 16 by 8 patches, then what a warp repeats, then the warps, which
  /// lie along the rows first if `rows_first`, else so that each has a square.
  struct Matrix {
    Extents shape;
    int threads = 32;
    bool rows_first = false;
  };
  static Layout matrix(const Matrix& matrix);
  /// The accumulators of wgmma.m64: 64 rows by all columns for each four warps, which go down the
  /// rows first; where there are more of them than rows, each has a part of the columns.
  static Layout warpgroups(const Extents& shape, int threads);
  /// Neighbours along an axis in a thread, then in a warp, then in a block.
  static Layout in_order(const Extents& shape, int axis, int threads);
  /// Small squares per thread, for products without matrix instructions.
  static Layout patches(const Extents& shape, int threads);

  int rank() const { return rank_; }
  const std::vector<IndexBit>& register_bits() const { return registers_; }
  const std::vector<IndexBit>& thread_bits() const { return threads_; }
  int registers() const { return 1 << registers_.size(); }

  /// Indices that are held along an axis: a power of two, at least the extent of the tile.
  std::int64_t extent(int axis) const;
  /// What a register adds to the index along an axis.
  std::int64_t offset(int axis, int reg) const;
  /// How many registers from each multiple on are neighbours along an axis: a power of two.
  int run(int axis) const;

  /// Without an axis: the threads along it hold the same.
  Layout without(int axis) const;
  /// With one index along the axis, and with the axis inserted.
  Layout collapsed(int axis) const;
  Layout inserted(int axis) const;
  /// Axis i of the result is axis order[i].
  Layout permuted(const std::vector<std::int64_t>& order) const;

  auto operator<=>(const Layout&) const = default;

 private:
  int rank_ = 0;
  std::vector<IndexBit> registers_, threads_;
};

/// Whether threads hold the same in both, so that registers change names alone.
bool renames(const Layout& from, const Layout& to);

/// The thread bits that are the lane in a warp.
constexpr int kLaneBits = 5;
/// Those within a warpgroup, four warps that multiply together.
constexpr int kGroupBits = 7;

/// Bits of an extent rounded up to a power of two; that power, or `least` if that is more.
int index_bits(std::int64_t extent);
inline std::int64_t held_extent(std::int64_t extent, std::int64_t least = 1) {
  return std::max(least, std::int64_t{1} << index_bits(extent));
}

}  // namespace tessera::tile::gpu
