#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::codegen::ptx {

/// How a kernel without products is spread over threads. What is chosen was measured on an H200, as
/// shares of a copy's bandwidth:
///
///   rows of   alone (softmax)                with parameters (layer norm): blocks go on
///   ≤ 1 KB    a warp each, 0.94 to 0.99      a warp each, 0.87 to 0.92
///   2 KB      32 bytes a thread, 0.99        32 bytes a thread, blocks do not go on, 0.96
///   ≤ 8 KB    32 bytes a thread, 0.97        32 bytes a thread, 0.91 to 0.95
///   16 KB     64 bytes a thread, 0.97        128 bytes a thread, two rows ahead, 0.88
///   32 KB     64 bytes, two ahead: 0.94      128 bytes a thread, 0.89
///   64 KB     64 bytes, one ahead: 0.91      128 bytes a thread, 0.89
struct Rows {
  bool any = false;  // whether the kernel is of this kind
  /// Whether a block goes on with further programs, whose rows are read ahead: where a
  /// multiprocessor has room for few rows, or where parameters are read once for many rows.
  bool loops = false;
  int ahead = 1;  // rows that are read ahead
  int bytes_per_thread = 64;
  /// That a thread may have, so that enough blocks run at once; 0: as many as it likes.
  int registers = 0;
};
Rows rows_of(const tile::Kernel& kernel);

}  // namespace tessera::codegen::ptx
