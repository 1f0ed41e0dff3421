#pragma once

#include <llvm/IR/Value.h>

#include <map>
#include <utility>
#include <vector>

#include "tessera/codegen/llvm/math.h"
#include "tessera/codegen/ptx/shared_operand.h"
#include "tessera/tile/gpu/layout.h"
#include "tessera/tile/kernel.h"

namespace tessera::codegen::ptx {

using tile::gpu::Layout;

/// Values of a kernel in the code of a thread.
struct Values {
  struct View {
    llvm::Value* base = nullptr;  // i64
    std::vector<llvm::Value*> extents, strides;
  };
  std::vector<llvm::Value*> scalars;  // uniform over the block
  std::map<tile::ValueId, View> views;
  std::map<std::pair<tile::ValueId, Layout>, Pieces> tiles;  // fragments: registers
  std::map<tile::ValueId, SharedOperand> buffers;            // tiles in shared memory

  /// Rows of 16-bit elements kept packed as loaded: half of the registers that they need in f32.
  struct Packed {
    Layout layout;
    Pieces runs;
    DType dtype;
    int run;
    llvm::Value* base;  // of the view
  };
  std::map<tile::ValueId, Packed> packed;

  llvm::Value* program = nullptr;  // current program of a persistent block, i64
  llvm::Value* slot = nullptr;     // slot of its prefetched loads, i32
  llvm::Value* part = nullptr;     // index of the part of a row, i32
  /// Rows that are processed in parts: addresses.
  struct Row {
    llvm::Value *first = nullptr, *end = nullptr;
    int width = 0;
  };
  std::map<tile::OpId, Row> rows;
};

}  // namespace tessera::codegen::ptx
