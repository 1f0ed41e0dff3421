#include "tessera/codegen/ptx/tile_pipeline_writer.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include "tessera/tile/gpu/warp_specialization.h"

namespace tessera::codegen::ptx {

using tile::Code;
using tile::gpu::consumer_groups_of;
using tile::gpu::ConsumerGroups;
using tile::gpu::kProducerThreads;

std::pair<std::size_t, const StagedOperand*> TilePipelineWriter::find(OpId load) const {
  for (std::size_t i = 0; i < pipelines_.size(); ++i)
    for (const StagedOperand& staged : pipelines_[i].loads)
      if (staged.load == load) return {i, &staged};
  TESSERA_CHECK(false, "{}: a load is in no pipeline", kernel_.name);
  return {};
}

llvm::Value* TilePipelineWriter::barrier_at(std::int64_t first, llvm::Value* number) {
  return block_.shared(block_.common(
      ir_.CreateAdd(block_.i32(first), ir_.CreateMul(number, block_.i32(kBarrierBytes)))));
}
llvm::Value* TilePipelineWriter::full_barrier(const TilePipeline& pipeline, llvm::Value* stage) {
  return barrier_at(pipeline.barriers, stage);
}
llvm::Value* TilePipelineWriter::empty_barrier(const TilePipeline& pipeline, llvm::Value* stage) {
  return barrier_at(pipeline.barriers + pipeline.count * kBarrierBytes, stage);
}

llvm::Value* TilePipelineWriter::base_of(const TilePipeline& pipeline, llvm::Value* stage) {
  return ir_.CreateAdd(block_.common(block_.i32(pipeline.offset)),
                       ir_.CreateMul(stage, block_.i32(pipeline.stage_bytes())));
}

void TilePipelineWriter::advance(const TilePipeline& pipeline, const State& state) {
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* phase = ir_.CreateLoad(word, state.phase);
  if (pipeline.count == 1) {
    ir_.CreateStore(ir_.CreateXor(phase, block_.i32(1)), state.phase);
    return;
  }
  llvm::Value* next = ir_.CreateAdd(ir_.CreateLoad(word, state.stage), block_.i32(1));
  llvm::Value* wraps = ir_.CreateICmpEQ(next, block_.i32(pipeline.count));
  ir_.CreateStore(ir_.CreateSelect(wraps, block_.i32(0), next), state.stage);
  ir_.CreateStore(ir_.CreateXor(phase, ir_.CreateZExt(wraps, word)), state.phase);
}

void TilePipelineWriter::write(const tile::gpu::FillTile& fill) {
  const auto [number, staged] = find(fill.load);
  const TilePipeline& pipeline = pipelines_[number];
  const State& state = states_[number];
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* stage = ir_.CreateLoad(word, state.stage);
  // A stage that was never filled counts as empty: the phase before the first.
  block_.special("mbarrier.wait",
                 {empty_barrier(pipeline, stage),
                  ir_.CreateXor(ir_.CreateLoad(word, state.phase), block_.i32(1))});
  llvm::Value* full = full_barrier(pipeline, stage);
  llvm::Value* base = base_of(pipeline, stage);
  either(
      mapped_,
      [&] {
        copies_.copy_tile_by_map(*staged, base, number, full);
        return Pieces{};
      },
      [&] {
        copies_.copy_tile_by_threads(*staged, base);
        block_.publish();
        block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared, {full});
        return Pieces{};
      });
  advance(pipeline, state);
}

void TilePipelineWriter::write(const tile::gpu::AwaitTile& await) {
  const auto [number, staged] = find(await.load);
  const TilePipeline& pipeline = pipelines_[number];
  const State& state = states_[number];
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* stage = ir_.CreateLoad(word, state.stage);
  block_.special("mbarrier.wait",
                 {full_barrier(pipeline, stage), ir_.CreateLoad(word, state.phase)});
  values_.buffers[operation(await.load).out[0]] = {staged->panels, base_of(pipeline, stage)};
  awaited_[await.load] = stage;
  advance(pipeline, state);
}

void TilePipelineWriter::write(const tile::gpu::ReleaseTile& release) {
  const TilePipeline& pipeline = pipelines_[find(release.load).first];
  llvm::Value* first = ir_.CreateICmpEQ(block_.thread_bits(0, kLaneBits), block_.i32(0));
  llvm::Value* empty = empty_barrier(pipeline, awaited_.at(release.load));
  if (!release.is_early) {
    block_.when(first,
                [&] { block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared, {empty}); });
    return;
  }
  block_.when(first, [&] { block_.special("mbarrier.release", {empty}); });
  block_.intrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {block_.i32(-1)});
}

// Uniform over a warp, which the compiler cannot infer from thread indices.
llvm::Value* TilePipelineWriter::warpgroup() {
  return block_.intrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32,
                          {block_.i32(-1), ir_.CreateLShr(block_.thread(), block_.i32(kGroupBits)),
                           block_.i32(0), block_.i32(31)});
}

void TilePipelineWriter::write(const tile::gpu::AwaitMatmulTurn& /*await*/) {
  llvm::Value* parity = ir_.CreateLoad(ir_.getInt32Ty(), turn_phase_);
  block_.special("mbarrier.wait", {barrier_at(turns_, warpgroup()), parity});
  ir_.CreateStore(ir_.CreateXor(parity, block_.i32(1)), turn_phase_);
}

void TilePipelineWriter::write(const tile::gpu::SignalMatmulTurn& /*signal*/) {
  llvm::Value* first = ir_.CreateICmpEQ(block_.thread_bits(0, kLaneBits), block_.i32(0));
  llvm::Value* other = barrier_at(turns_, ir_.CreateXor(warpgroup(), block_.i32(1)));
  block_.when(first,
              [&] { block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared, {other}); });
}

void TilePipelineWriter::init_barriers(const tile::gpu::PipelineTasks& tasks) {
  llvm::Function& function = block_.function();
  const auto word =
      static_cast<unsigned>(function.arg_size()) - static_cast<unsigned>(mapping_.maps) - 1;
  mapped_ = ir_.CreateICmpNE(function.getArg(word), block_.i64(0));
  llvm::Value* copiers = ir_.CreateSelect(mapped_, block_.i32(1), block_.i32(kProducerThreads));
  turns_ = tasks.turns;
  block_.when(ir_.CreateICmpEQ(block_.thread(), block_.i32(0)), [&] {
    const auto start = [&](llvm::Value* barrier, llvm::Value* arrivals) {
      block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_init_shared, {barrier, arrivals});
    };
    constexpr int kWarpsOfAGroup = 1 << (kGroupBits - kLaneBits);
    for (int group = 0; group < plan_.threads() >> kGroupBits; ++group)
      start(barrier_at(turns_, block_.i32(group)), block_.i32(kWarpsOfAGroup));
    for (const TilePipeline& pipeline : pipelines_)
      for (int stage = 0; stage < pipeline.count; ++stage) {
        start(full_barrier(pipeline, block_.i32(stage)), copiers);
        start(empty_barrier(pipeline, block_.i32(stage)), block_.i32(plan_.threads() >> kLaneBits));
      }
    block_.publish();
  });
  block_.barrier();
}

void TilePipelineWriter::open_states() {
  states_.clear();
  for (std::size_t i = 0; i < pipelines_.size(); ++i)
    states_.push_back({block_.slot(block_.i32(0)), block_.slot(block_.i32(0))});
}

void TilePipelineWriter::produce(const tile::gpu::PipelineTasks& tasks,
                                 const ProgramRange& programs) {
  const ConsumerGroups groups = consumer_groups_of(plan_.threads());
  block_.restrict_to(
      {.first = plan_.threads(), .threads = kProducerThreads, .barrier = kCopyBarrier});
  block_.intrinsic(llvm::Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32,
                   {block_.i32(groups.producer_registers)});
  end_idle_producers(mapped_);
  open_states();
  in_rounds(programs, tasks.producer);
  ir_.CreateRetVoid();
}

void TilePipelineWriter::consume(const tile::gpu::PipelineTasks& tasks,
                                 const ProgramRange& programs) {
  const ConsumerGroups groups = consumer_groups_of(plan_.threads());
  block_.restrict_to({.first = 0, .threads = plan_.threads(), .barrier = kComputeBarrier});
  block_.intrinsic(llvm::Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                   {block_.i32(groups.consumer_registers)});
  open_states();
  // The first turn of the first warpgroup waits for nobody: the phase before the first.
  turn_phase_ = block_.slot(block_.i32(0));
  ir_.CreateStore(ir_.CreateXor(warpgroup(), block_.i32(1)), turn_phase_);
  in_rounds(programs, tasks.consumer);
}

// Boustrophedon order: every second round of programs goes through the blocks backwards. Where
// programs become shorter and shorter, blocks then end at about the same time.
void TilePipelineWriter::in_rounds(const ProgramRange& programs, const tile::gpu::Body& body) {
  llvm::Value* const two = ir_.CreateShl(programs.step, 1);
  llvm::Value* const twice_first = ir_.CreateShl(programs.first, 1);
  llvm::Value* step =
      block_.slot(block_.i64(0));  // to the next program: to a later round and back again
  ir_.CreateStore(ir_.CreateSub(ir_.CreateSub(two, block_.i64(1)), twice_first), step);
  for_programs(
      programs,
      [&] {
        llvm::Value* further = ir_.CreateLoad(ir_.getInt64Ty(), step);
        ir_.CreateStore(ir_.CreateSub(two, further), step);
        return further;
      },
      [&] {
        block_.renew_thread();
        bodies_.write(body);
      });
}

void TilePipelineWriter::write(const tile::gpu::PipelineTasks& tasks) {
  pipelines_ = tasks.pipelines;
  llvm::Value* count = evaluator_.pid(Code::Npid, 0);
  init_barriers(tasks);
  bodies_.write(tasks.start);
  const ProgramRange programs{
      .count = count,
      .first = evaluator_.pid(Code::Pid, 0),
      .step = ir_.CreateZExt(block_.intrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, {}),
                             ir_.getInt64Ty())};
  llvm::BasicBlock *computes = block_.block("compute"), *copies = block_.block("copy");
  ir_.CreateCondBr(ir_.CreateICmpULT(block_.thread(), block_.i32(plan_.threads())), computes,
                   copies);
  ir_.SetInsertPoint(copies);
  produce(tasks, programs);
  ir_.SetInsertPoint(computes);
  consume(tasks, programs);
}

}  // namespace tessera::codegen::ptx
