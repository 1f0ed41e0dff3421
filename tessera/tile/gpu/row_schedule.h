#pragma once

#include <cstdint>

#include "tessera/tile/kernel.h"

namespace tessera::tile::gpu {

/// Schedule of a kernel without matmuls: how rows (softmax, layer norm, elementwise) are
/// distributed over threads. The choices were measured on an H200, as fractions of the bandwidth of
/// a copy:
///
///   rows of   alone (softmax)                     with parameters (layer norm)
///   512 B     two rows a warp, 0.99               two rows a warp, packed, 40 registers, 0.99
///   1 KB      a warp each, 0.99                   a warp each, 40 registers, 0.99
///   2 KB      32 bytes per thread, 0.99           32 bytes per thread, 0.98
///   4 KB      32 bytes per thread, 1.00           32 bytes, 40 registers, 0.99
///   8 KB      32 bytes per thread, 0.98           32 bytes, 40 registers, 0.98
///   16 KB     64 bytes per thread, 0.97           128 bytes, 128 registers, 0.96; f32: half of it
///   32 KB     128 bytes, 80 registers, 0.96       128 bytes, 128 registers, 0.96; f32: half of it
///   64 KB     64 bytes, a row prefetched, 0.92    parts of 16 KB by 512 threads, cached, 0.91
///   98 KB     parts of 16 KB by 512 threads, cached: 0.62 and 0.67, unaligned rows
///   128 KB    parts of 32 KB by 512 threads, 7/8 cached: 0.74 and 0.80
///   250 KB    parts of 16 KB by 512 threads, less than half cached: 0.78 and 0.62
///
/// Rows of any length, drawn (`bench/gpu/drawn_shapes.py rows`): f32 0.9 to 1.0 up to 64 KB; f16
/// softmax 0.8 to 1.0, layer norm 0.6 to 1.0. The GPU starts about one block per cycle: sums of 300
/// f16 were at 0.55 with four of them in a block, at 0.95 with eight or more. So rows share a warp,
/// and warps a block, until it moves 8 KB.
struct RowSchedule {
  bool any = false;  // whether the kernel is of this kind
  /// Whether blocks are persistent, with rows of the next programs prefetched: where an SM has no
  /// room for two rows.
  bool persistent = false;
  int prefetched = 1;  // number of rows prefetched
  int bytes_per_thread = 64;
  int coarsening = 1;      // programs of the grid merged into one: each has a row of the tile
  std::int64_t moved = 0;  // bytes that a program loads and stores for itself
  /// Whether there are many more programs than fit on the GPU, as far as the views tell: few ones
  /// are spread over all SMs.
  bool many = true;
  /// Maximum number of registers per thread, for occupancy; 0: no limit.
  int registers = 0;
  bool packed = false;      // 16-bit elements stay packed in registers until a reduction
  std::int64_t extent = 0;  // elements of a row
  /// Elements of a row processed per pass, where a row exceeds the registers of a block, with the
  /// bytes and registers per thread of a pass; 0: the whole row.
  std::int64_t part = 0;
  int part_bytes_per_thread = 16, part_registers = 32;
  std::int64_t cached_bytes = 0;  // of a row, cached in shared memory between passes
};
/// Selects the schedule of a kernel; `any` is false where it is of another kind. `may_persist`:
/// blocks may be persistent.
RowSchedule row_schedule(const Kernel& kernel, bool may_persist);
/// Programs of a block, where each is run by one warp.
int programs_of_block(const RowSchedule& rows);

/// Groups independent reductions so that their cross-warp exchanges share one barrier; loads and
/// stores keep their place relative to values that depend on reductions.
void gather_reductions(Kernel& kernel);

}  // namespace tessera::tile::gpu
