#pragma once

#include "tessera/codegen/ptx/view_access.h"

namespace tessera::codegen::ptx {

/// Writer of accesses through pointers, and of atomic operations.
class PointerAccess : public CodeWriter {
 public:
  PointerAccess(const Context& context, PointerFacts& facts) : CodeWriter(context), facts_(facts) {}
  void write(const tile::gpu::LoadPointers& load);
  void write(const tile::gpu::StorePointers& store);
  void write(const tile::gpu::AtomicUpdate& update);
  void write(const tile::gpu::ShareAtomic& share);

 private:
  /// Elements per vector access.
  int run_of(const Operation& op, const Layout& layout);
  llvm::Value* update(const Operation& op, llvm::Value* pointer, llvm::Value* expected,
                      llvm::Value* value);

  PointerFacts& facts_;
};

}  // namespace tessera::codegen::ptx
