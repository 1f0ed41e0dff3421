#pragma once

#include <map>

#include "tessera/codegen/ptx/async_copy.h"

namespace tessera::codegen::ptx {

/// Writer of loops and branches, and of the copies of software-pipelined loops.
class LoopWriter : public CodeWriter {
 public:
  LoopWriter(const Context& context, LoopBounds& bounds, AsyncCopy& copies, BodyWriter& bodies)
      : CodeWriter(context), bounds_(bounds), copies_(copies), bodies_(bodies) {}

  void write(const tile::gpu::ForLoop& loop);
  void write(const tile::gpu::WhileLoop& loop);
  void write(const tile::gpu::Branch& branch);
  Pieces yielded(const tile::gpu::Yield& yield) { return flat(yield.values); }
  void write(const tile::gpu::PrefetchConstants& prefetch);
  void write(const tile::gpu::PrefetchFirst& prefetch);
  void write(const tile::gpu::AwaitCopies& await);
  void write(const tile::gpu::PrefetchNext& prefetch);
  void write(const tile::gpu::WaitCopies& wait);
  void write(const tile::gpu::EnterStage& enter);
  void write(const tile::gpu::OfWarpgroup& of);

  /// A loop that is being written.
  struct OpenLoop {
    LoopRange range = {};
    llvm::Value *index = nullptr, *stage = nullptr, *next_stage = nullptr;
    tile::gpu::Stages stages = {};
    AsyncCopy::Conditions fits = {};
    /// Byte offset of the stage that is `by_stages` after that of this iteration; before the loop,
    /// after that of the first.
    llvm::Value* further(Block& block, int by_stages) const;
  };
  const OpenLoop& open_loop(OpId id) const { return loops_.at(id); }

 private:
  /// Starts to write a pipelined loop: its bounds, its stages, and a barrier before they are
  /// filled.
  void open(OpId loop, const tile::gpu::Stages& stages);
  /// Copies of one of the first iterations.
  void prefetch(OpId loop, int stage, const AsyncCopy::Operands& operands, bool is_published);

  /// Registers of fragments as what a loop carries, and back.
  Pieces packed(const std::vector<tile::gpu::Fragment>& fragments, const Pieces& registers);
  Pieces unpacked(const std::vector<tile::gpu::Fragment>& fragments, const Pieces& words);
  bool is_carried_packed(const tile::gpu::Fragment& fragment) const;

  LoopBounds& bounds_;
  AsyncCopy& copies_;
  BodyWriter& bodies_;
  std::map<OpId, OpenLoop> loops_;
};

}  // namespace tessera::codegen::ptx
