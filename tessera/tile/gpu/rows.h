#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile::gpu {

/// How a kernel without products is spread over threads. What is chosen was measured on an H200, as
/// shares of a copy's bandwidth:
///
///   rows of   alone (softmax)                     with parameters (layer norm)
///   512 B     two rows a warp, 1.00               four rows a warp, 80 registers, 0.96
///   1 KB      a warp each, 1.00                   two rows a warp, 80 registers, 0.98
///   2 KB      32 bytes a thread, 1.00             32 bytes a thread, 1.00
///   4 KB      32 bytes a thread, 1.00             32 bytes, 40 registers, 0.99
///   8 KB      32 bytes a thread, 0.98             32 bytes, 40 registers, 0.98
///   16 KB     64 bytes a thread, 0.99             128 bytes, 128 registers, 0.97
///   32 KB     128 bytes, 80 registers, 0.97       128 bytes, 128 registers, 0.97
///   64 KB     64 bytes, a row read ahead, 0.92    64 bytes, a row read ahead, 0.89
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
};
Rows rows_of(const Kernel& kernel);

/// Puts reductions that do not need each other one after the other, so that warps meet once for all
/// of them; loads and stores stay where they are among what follows from reductions.
void gather_reductions(Kernel& kernel);

}  // namespace tessera::tile::gpu
