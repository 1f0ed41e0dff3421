#pragma once

#include <llvm/IR/Value.h>

#include "tessera/tile/gpu/panels.h"

namespace tessera::codegen::ptx {

using tile::gpu::kChunk;
using tile::gpu::kPanel;
using tile::gpu::kSharedAlignment;
using tile::gpu::shared_room;

/// A matmul operand in shared memory.
struct SharedOperand : tile::gpu::Panels {
  llvm::Value* base = nullptr;  // i32: byte offset of the first panel
};

}  // namespace tessera::codegen::ptx
