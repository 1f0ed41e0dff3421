#pragma once

#include <cstdint>

#include "tessera/machine/machine.h"
#include "tessera/support/dtype.h"

namespace tessera::tile::cpu {

/// What the instructions of a product do: multiply lanes, or small blocks of matrices.
enum class Products : std::uint8_t { Lanes, Blocks };

/// The tile of c that stays in registers: its rows, and vectors along its columns.
struct RegisterTile {
  int rows, vectors;
};
RegisterTile register_tile(Products products, const machine::Machine& machine);

/// How the right factor of a product of matrices is packed ahead: cut into panels of columns.
/// Inside of a panel element (k, j) is at ((k / k_group) * columns + j) * k_group + k % k_group.
struct Panels {
  DType dtype = DType::F32;
  std::int64_t columns = 0;
  int k_group = 1;
};

/// The panels for products of factors of a dtype, F32, BF16 or I8 (the left one may be U8), where
/// the left one has so many rows. Where the processor has no instruction for it, BF16 becomes F32,
/// and I8 has no groups.
Panels panels_for(DType factors, std::int64_t rows, const machine::Machine& machine);

}  // namespace tessera::tile::cpu
