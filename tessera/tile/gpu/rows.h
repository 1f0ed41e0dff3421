#pragma once

#include <cstdint>

#include "tessera/tile/kernel.h"

namespace tessera::tile::gpu {

/// How a kernel without products is spread over threads. What is chosen was measured on an H200, as
/// shares of a copy's bandwidth:
///
///   rows of   alone (softmax)                     with parameters (layer norm)
///   512 B     two rows a warp, 0.99               two rows a warp, packed, 40 registers, 0.99
///   1 KB      a warp each, 0.99                   a warp each, 40 registers, 0.99
///   2 KB      32 bytes a thread, 0.99             32 bytes a thread, 0.98
///   4 KB      32 bytes a thread, 1.00             32 bytes, 40 registers, 0.99
///   8 KB      32 bytes a thread, 0.98             32 bytes, 40 registers, 0.98
///   16 KB     64 bytes a thread, 0.97             128 bytes, 128 registers, 0.96
///   32 KB     128 bytes, 80 registers, 0.96       128 bytes, 128 registers, 0.96
///   64 KB     64 bytes, a row read ahead, 0.92    parts of 16 KB by 512 threads, kept, 0.91
///   98 KB     parts of 16 KB by 512 threads, kept: 0.62 and 0.67, where rows begin anywhere
///   128 KB    parts of 32 KB by 512 threads, 7/8 kept: 0.74 and 0.80
///   250 KB    parts of 64 KB by 1024 threads, 9/10 kept: 0.61 and 0.72
///
/// Rows of 16 KB that begin anywhere: parts of a quarter, kept, 0.86 and 0.77.
struct Rows {
  bool any = false;  // whether the kernel is of this kind
  /// Whether a block goes on with further programs, whose rows are read ahead: where a
  /// multiprocessor has no room for two rows.
  bool loops = false;
  int ahead = 1;  // rows that are read ahead
  int bytes_per_thread = 64;
  int together = 1;  // programs of the grid that are run as one: each has a row of a tile
  /// That a thread may have, so that enough blocks run at once; 0: as many as it likes.
  int registers = 0;
  bool packed = false;      // 16-bit rows wait for a reduction as they lie in memory
  std::int64_t extent = 0;  // elements of a row
  /// Where the registers of a block do not hold a row: what is read of it at once, by how many
  /// threads; 0: the row.
  std::int64_t part = 0;
  int part_bytes_per_thread = 16, part_registers = 32;
  std::int64_t keep_bytes = 0;  // of it, in shared memory
};
Rows rows_of(const Kernel& kernel);

/// Puts reductions that do not need each other one after the other, so that warps meet once for all
/// of them; loads and stores stay where they are among what follows from reductions.
void gather_reductions(Kernel& kernel);

}  // namespace tessera::tile::gpu
