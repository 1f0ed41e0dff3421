#pragma once

#include "tessera/codegen/ptx/async_copy.h"
#include "tessera/codegen/ptx/loop_writer.h"
#include "tessera/codegen/ptx/program_loop.h"

namespace tessera::codegen::ptx {

/// Writer of warp-specialized blocks: producer warps fill the multi-stage buffers, consumer warps
/// compute everything else. They synchronize by mbarriers in shared memory, two per stage (full:
/// data arrived, and empty: consumers left), so that copies for the next program overlap with the
/// epilogue of the current one.
class SpecializedWriter : public ProgramLoopWriter {
 public:
  /// Writers of what the tasks consist of.
  struct Parts {
    Evaluator& evaluator;
    LoopBounds& bounds;
    AsyncCopy& copies;
    LoopWriter& loops;
    BodyWriter& bodies;
  };
  SpecializedWriter(const Context& context, const Parts& parts)
      : ProgramLoopWriter(context), parts_(parts) {}

  void write(const tile::gpu::WarpTasks& tasks);
  void write(const tile::gpu::FillStages& fill);
  void write(const tile::gpu::FillConstants& fill);
  void write(const tile::gpu::AwaitTurn& await);
  void write(const tile::gpu::SignalTurn& signal);
  void write(const tile::gpu::AwaitStage& await);
  void write(const tile::gpu::ReleaseStage& release);

 private:
  void init_barriers(const tile::gpu::WarpTasks& tasks, int groups);
  void produce(const tile::gpu::WarpTasks& tasks, const ProgramRange& programs);
  void consume(const tile::gpu::WarpTasks& tasks, const ProgramRange& all);
  /// Advances the stage and phase past the iterations of a program that the other consumer group
  /// computes.
  void skip_iterations(const tile::gpu::WarpTasks& tasks, llvm::Value* program);
  const Operation& loop() const;
  llvm::Value* stage_barrier(std::int64_t first, llvm::Value* stage);
  void to_next_stage();

  const Parts parts_;
  tile::gpu::Stages stages_ = {};
  llvm::Value* mapped_ = nullptr;      // whether tensor maps could be encoded; null: no maps
  std::int64_t full_ = 0, empty_ = 0;  // mbarriers in shared memory
  std::int64_t order_ = 0;             // mbarriers that order the consumer groups
  llvm::Value *stage_ = nullptr, *phase_ = nullptr, *order_phase_ = nullptr;  // slots
  llvm::Value* started_ = nullptr;  // slot: stages that FillConstants has started
};

}  // namespace tessera::codegen::ptx
