#pragma once

#include <cstdint>

#include "tessera/machine/machine.h"
#include "tessera/support/dtype.h"

namespace tessera::tile::cpu {

/// Kind of multiply-add instructions of a matmul: vector lanes, or small matrix blocks.
enum class MatmulUnit : std::uint8_t { Lanes, Blocks };

/// Register tile of c: number of rows, and of vectors along its columns.
struct RegisterTile {
  int rows, vectors;
};
RegisterTile register_tile(MatmulUnit unit, const machine::Machine& machine);

/// Rows of the register tile for panels of so many columns of f32: wider panels have fewer rows, so
/// that the accumulators are as many.
int register_rows(std::int64_t panel_columns, const machine::Machine& machine);

/// Prepacked layout of the right operand of a matmul: panels of columns. Within a panel, element
/// (k, j) is at ((k / k_group) * columns + j) * k_group + k % k_group.
struct Panels {
  DType dtype = DType::F32;
  std::int64_t columns = 0;
  int k_group = 1;
};

/// Panel layout for matmuls whose factors have this dtype, F32, BF16 or I8 (the left one may be
/// U8), and whose left factor has so many rows. Where the CPU has no instruction for it, BF16
/// becomes F32, and I8 has no groups.
Panels panels_for(DType factors, std::int64_t rows, const machine::Machine& machine);

}  // namespace tessera::tile::cpu
