#pragma once

#include "tessera/codegen/llvm/dot_parts.h"

namespace tessera::codegen::amx {

/// Shape of an AMX tile register, and the functions that AMX dots are made of.
constexpr int rows_of_tile = 16;  // maximum; for b: groups of k
constexpr int bytes_of_row = 64;  // for b and c: 16 columns
constexpr int columns_of_tile = 16;
constexpr int bytes_of_group = 2 * bytes_of_row;  // in a panel of b, which is two tiles wide

/// Configures the tile registers: those of a and c have `height` rows. All become zero.
void configure(llvm::IRBuilder<>& ir, int height);
void release(llvm::IRBuilder<>& ir);

/// AMX micro-kernel: c (+)= a·b for 1 or 2 times 1 or 2 tiles.
///   void(i64 tiles, a, i64 a_next, b, i64 b_stride, rest, c, i64 c_stride, i1 accumulate)
/// `tiles` tiles of a and b along k; then, unless `rest` is null, one more of a with `rest` as that
/// of b. Strides are in bytes: between tiles of rows of a, groups of b, rows of c.
struct Kernel {
  const char* instruction = nullptr;
  int rows = 2, columns = 2;
  int height = rows_of_tile;
};
llvm::Function* kernel(llvm::Module& module, const Kernel& kernel);

/// Packs rows of a into tiles, where k is contiguous in the source.
///   void(tiles, source, i64 row_stride, i64 rows, i64 k)
/// Missing rows, and k's up to the end of a tile, become zeros.
llvm::Function* row_packer(llvm::Module& module, DType dtype, int height);

/// Packs columns of b into a panel, where they are contiguous in the source.
///   void(panel, source, i64 k_stride, i64 columns, i64 k)
llvm::Function* column_packer(llvm::Module& module, DType dtype, int k_group);

/// Packs the last groups of a panel into tiles, padded with zeros.
///   void(tiles, panel, i64 stride in bytes, i64 groups)
llvm::Function* rest_packer(llvm::Module& module);

}  // namespace tessera::codegen::amx
