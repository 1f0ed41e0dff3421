#pragma once

#include <map>
#include <utility>
#include <vector>

#include "tessera/codegen/ptx/async_copy.h"
#include "tessera/codegen/ptx/program_loop.h"

namespace tessera::codegen::ptx {

/// Writer of warp-specialized blocks whose producers fill a pipeline for each view
/// (tile_pipelines.h). The state of a pipeline, in producers and in consumers, is its next stage
/// and the parity of that stage's phase.
class TilePipelineWriter : public ProgramLoopWriter {
 public:
  TilePipelineWriter(const Context& context, Evaluator& evaluator, AsyncCopy& copies,
                     BodyWriter& bodies)
      : ProgramLoopWriter(context), evaluator_(evaluator), copies_(copies), bodies_(bodies) {}

  void write(const tile::gpu::PipelineTasks& tasks);
  void write(const tile::gpu::FillTile& fill);
  void write(const tile::gpu::AwaitTile& await);
  void write(const tile::gpu::ReleaseTile& release);
  void write(const tile::gpu::AwaitMatmulTurn& await);
  void write(const tile::gpu::SignalMatmulTurn& signal);

 private:
  static constexpr int kCopyBarrier = 1, kComputeBarrier = 2;  // named barriers
  static constexpr std::int64_t kBarrierBytes = 8;             // of an mbarrier
  using TilePipeline = tile::gpu::TilePipeline;
  struct State {
    llvm::Value *stage = nullptr, *phase = nullptr;  // slots
  };

  void init_barriers(const tile::gpu::PipelineTasks& tasks);
  void open_states();
  void produce(const tile::gpu::PipelineTasks& tasks, const ProgramRange& programs);
  void consume(const tile::gpu::PipelineTasks& tasks, const ProgramRange& programs);
  /// Writes a body for each program of the block.
  void in_rounds(const ProgramRange& programs, const tile::gpu::Body& body);
  /// The pipeline of a load, its number, and the load as an operand of it.
  std::pair<std::size_t, const StagedOperand*> find(OpId load) const;
  llvm::Value* full_barrier(const TilePipeline& pipeline, llvm::Value* stage);
  llvm::Value* empty_barrier(const TilePipeline& pipeline, llvm::Value* stage);
  llvm::Value* barrier_at(std::int64_t first, llvm::Value* number);
  llvm::Value* base_of(const TilePipeline& pipeline, llvm::Value* stage);
  void advance(const TilePipeline& pipeline, const State& state);
  llvm::Value* warpgroup();

  Evaluator& evaluator_;
  AsyncCopy& copies_;
  BodyWriter& bodies_;
  std::vector<TilePipeline> pipelines_;
  std::vector<State> states_;             // of the pipelines
  std::map<OpId, llvm::Value*> awaited_;  // stages of tiles that consumers read
  llvm::Value* mapped_ = nullptr;         // whether tensor maps could be encoded
  std::int64_t turns_ = 0;                // mbarriers of the warpgroups
  llvm::Value* turn_phase_ = nullptr;     // slot
};

}  // namespace tessera::codegen::ptx
