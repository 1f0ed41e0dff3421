#pragma once

#include <vector>

#include "tessera/codegen/llvm/math.h"
#include "tessera/tile/gpu/layout.h"
#include "tessera/tile/kernel.h"

namespace tessera::codegen::ptx {

using tile::gpu::Layout;

/// A reduction, as far as each thread could do it alone.
struct Fold {
  const tile::Operation* op;
  Layout rest;                 // of the result: without the axis
  std::vector<int> lane_bits;  // of threads, along the axis: whose parts are still apart
  std::vector<int> warp_bits;
  std::vector<DType> types;   // of what is in a part: by operand
  std::vector<Pieces> parts;  // by register of `rest`
  bool padded;                // the last of a part says whether it counts
  bool wide;                  // sums of 16-bit floats, in f32
};

/// Sums and products of 16-bit floats are carried in f32.
bool widens(const tile::Operation& op, DType dtype);

}  // namespace tessera::codegen::ptx
