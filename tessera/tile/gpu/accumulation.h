#pragma once

#include "tessera/tile/gpu/layout.h"
#include "tessera/tile/kernel.h"
#include "tessera/tile/passes/cut_rows.h"

namespace tessera::tile::gpu {

/// Whether a reduction accumulates in f32: sums and products of 16-bit floats.
inline bool widens(const Operation& op, DType dtype) {
  const bool rounds = op.function == Function::Add || op.function == Function::Mul;
  return rounds && (dtype == DType::F16 || dtype == DType::BF16);
}

/// Whether a partial result of a reduction or scan says that it holds elements of the tile, because
/// no neutral element stands for the padding of the layout along its axis.
inline bool carries_validity(const Operation& op, const Type& of, const Layout& layout) {
  const auto axis = static_cast<std::size_t>(op.ints[0]);
  if (layout.extent(static_cast<int>(axis)) <= of.shape[axis]) return false;
  const DType part = widens(op, of.dtype) ? DType::F32 : of.dtype;
  return op.code == Code::Scan || !op.regions.empty() || !neutral_of(op.function, part);
}

}  // namespace tessera::tile::gpu
