#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::codegen::ptx {

/// How a kernel without products is spread over threads. What is chosen was measured on an H200, as
/// shares of a copy's bandwidth:
///
///   rows of   alone (softmax)               with parameters (layer norm)
///   ≤ 2 KB    a warp each, 0.90 to 0.96     the same, blocks go on: 0.84 to 0.91, else 0.75 to
///   0.88 ≤ 8 KB    32 bytes a thread, 0.93       the same, blocks go on: 0.88 to 0.92 16 KB     64
///   bytes a thread, 0.93       128 bytes a thread, blocks go on: 0.86, else 0.81 64 KB     64
///   bytes, go on: 0.88 (0.66)  128 bytes a thread, blocks go on: 0.83, else 0.60
struct Rows {
  /// Whether a block goes on with further programs, whose rows are read ahead: where a
  /// multiprocessor has room for one row, or where parameters are read once for many rows.
  bool loops = false;
  int bytes_per_thread = 64;
  /// That a thread may have, so that enough blocks run at once; 0: as many as it likes.
  int registers = 0;
};
Rows rows_of(const tile::Kernel& kernel);

}  // namespace tessera::codegen::ptx
