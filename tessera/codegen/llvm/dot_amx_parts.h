#pragma once

#include "tessera/codegen/llvm/dot_parts.h"

namespace tessera::codegen::amx {

constexpr int rows_of_tile = 16;  // at most; of b: groups of k
constexpr int bytes_of_row = 64;  // of b and c: 16 columns
constexpr int columns_of_tile = 16;
constexpr int bytes_of_group = 2 * bytes_of_row;  // of a panel of b, which is two tiles wide

/// Says what the tiles hold: those of a and c have `height` rows. All become zero.
void configure(llvm::IRBuilder<>& ir, int height);
void release(llvm::IRBuilder<>& ir);

/// c (+)= a·b for 1 or 2 times 1 or 2 tiles.
///   void(i64 tiles, a, i64 a_next, b, i64 b_stride, rest, c, i64 c_stride, i1 accumulate)
/// `tiles` of a and b along k; then, unless `rest` is null, one more of a and that of b. Strides
/// are in bytes: between tiles of rows of a, groups of b, rows of c.
struct Kernel {
  const char* instruction = nullptr;
  int rows = 2, columns = 2;
  int height = rows_of_tile;
};
llvm::Function* kernel(llvm::Module& module, const Kernel& kernel);

/// Copies rows of a into tiles, where k's lie side by side in the source.
///   void(tiles, source, i64 row_stride, i64 rows, i64 k)
/// Missing rows, and k's up to the end of a tile, become zeros.
llvm::Function* row_packer(llvm::Module& module, DType dtype, int height);

/// Copies columns of b into a panel, where they lie side by side in the source.
///   void(panel, source, i64 k_stride, i64 columns, i64 k)
llvm::Function* column_packer(llvm::Module& module, DType dtype, int k_group);

/// Copies the last groups of a panel into tiles, which are filled up with zeros.
///   void(tiles, panel, i64 stride in bytes, i64 groups)
llvm::Function* rest_packer(llvm::Module& module);

}  // namespace tessera::codegen::amx
