#pragma once

#include "tessera/codegen/ptx/evaluator.h"
#include "tessera/codegen/ptx/program_loop.h"
#include "tessera/codegen/ptx/view_access.h"

namespace tessera::codegen::ptx {

/// Writer of persistent blocks of rows: each thread prefetches, by cp.async, the elements of the
/// next program that it will read itself, and no barrier is needed.
class PersistentWriter : public ProgramLoopWriter {
 public:
  PersistentWriter(const Context& context, Evaluator& evaluator, ViewAccess& views,
                   BodyWriter& bodies)
      : ProgramLoopWriter(context), evaluator_(evaluator), views_(views), bodies_(bodies) {}

  /// Finds the programs of the block.
  void begin();
  void write(const tile::gpu::PrefetchProgram& prefetch);
  void write(const tile::gpu::PrefetchLoad& prefetch);
  void write(const tile::gpu::WaitPrefetch& wait);
  void write(const tile::gpu::TakePrefetched& take);
  void write(const tile::gpu::ProgramLoop& loop);

 private:
  llvm::Value* further(llvm::Value* program, int count);
  llvm::Value* own_slot(const tile::gpu::PrefetchBuffer& buffer, const Place& place, int reg);
  bool is_multi_stage() const { return mapping_.prefetched > 1; }

  Evaluator& evaluator_;
  ViewAccess& views_;
  BodyWriter& bodies_;
  ProgramRange programs_;
};

}  // namespace tessera::codegen::ptx
