#pragma once

#include <vector>

#include "tessera/codegen/llvm/math.h"
#include "tessera/tile/gpu/layout.h"
#include "tessera/tile/kernel.h"

namespace tessera::codegen::ptx {

using tile::gpu::Layout;

/// Partial reduction of a tile after each thread has reduced its own elements.
struct Fold {
  const tile::Operation* op;
  Layout rest;  // layout of the result: without the axis
  std::vector<int>
      lane_bits;  // thread bits along the axis, whose partial results are still to be combined
  std::vector<int> warp_bits;
  std::vector<DType> types;   // element types of a partial result: by operand
  std::vector<Pieces> parts;  // by register of `rest`
  bool padded;                // the last element of a partial result says whether it is valid
  bool wide;                  // 16-bit floats are accumulated in f32
};

/// Whether a reduction accumulates in f32: sums and products of 16-bit floats.
bool widens(const tile::Operation& op, DType dtype);

}  // namespace tessera::codegen::ptx
