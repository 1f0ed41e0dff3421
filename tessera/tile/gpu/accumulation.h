#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile::gpu {

/// Whether a reduction accumulates in f32: sums and products of 16-bit floats.
inline bool widens(const Operation& op, DType dtype) {
  const bool rounds = op.function == Function::Add || op.function == Function::Mul;
  return rounds && (dtype == DType::F16 || dtype == DType::BF16);
}

}  // namespace tessera::tile::gpu
