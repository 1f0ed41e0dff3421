#pragma once

#include <llvm/IR/Value.h>

#include "tessera/tile/gpu/panels.h"

namespace tessera::codegen::ptx {

using tile::gpu::kChunk;
using tile::gpu::kPanel;
using tile::gpu::kSharedAlignment;
using tile::gpu::shared_room;

/// An operand of a product in shared memory.
struct SharedOperand : tile::gpu::Panels {
  llvm::Value* base = nullptr;  // i32, in bytes: of the first panel
};

}  // namespace tessera::codegen::ptx
