#include "tessera/codegen/ptx/specialized_writer.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

namespace tessera::codegen::ptx {

using tile::Code;
using tile::gpu::consumer_groups_of;
using tile::gpu::ConsumerGroups;
using tile::gpu::kProducerThreads;
using tile::gpu::WarpTasks;

namespace {

constexpr int kCopyBarrier = 1, kComputeBarrier = 2;
constexpr int kConsumerGroups = 2;
constexpr std::int64_t kBarrierBytes = 8;

}  // namespace

const tile::Operation& SpecializedWriter::loop() const {
  return operation(context_.scheduled.warp_specialization->loop);
}

llvm::Value* SpecializedWriter::stage_barrier(std::int64_t first, llvm::Value* stage) {
  return block_.shared(block_.common(
      ir_.CreateAdd(block_.i32(first), ir_.CreateMul(stage, block_.i32(kBarrierBytes)))));
}

void SpecializedWriter::to_next_stage() {
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* next = ir_.CreateAdd(ir_.CreateLoad(word, stage_), block_.i32(1));
  llvm::Value* wraps = ir_.CreateICmpEQ(next, block_.i32(stages_.count));
  llvm::Value* phase = ir_.CreateLoad(word, phase_);
  ir_.CreateStore(ir_.CreateSelect(wraps, block_.i32(0), next), stage_);
  ir_.CreateStore(ir_.CreateXor(phase, ir_.CreateZExt(wraps, word)), phase_);
}

// An mbarrier distinguishes phases by parity only: a consumer group waits for a stage only when all
// stages before it have been waited for.
void SpecializedWriter::write(const tile::gpu::AwaitTurn& /*await*/) {
  if (block_.group() == nullptr) return;
  llvm::Value* parity = ir_.CreateLoad(ir_.getInt32Ty(), order_phase_);
  block_.special("mbarrier.wait", {stage_barrier(order_, block_.group()), parity});
  ir_.CreateStore(ir_.CreateXor(parity, block_.i32(1)), order_phase_);
}

void SpecializedWriter::write(const tile::gpu::SignalTurn& /*signal*/) {
  if (block_.group() == nullptr) return;
  llvm::Value* first = ir_.CreateICmpEQ(block_.thread_bits(0, kLaneBits), block_.i32(0));
  block_.when(first, [&] {
    llvm::Value* other = ir_.CreateXor(block_.group(), block_.i32(1));
    block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared, {stage_barrier(order_, other)});
  });
}

void SpecializedWriter::write(const tile::gpu::AwaitStage& /*await*/) {
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* stage = ir_.CreateLoad(word, stage_);
  block_.special("mbarrier.wait", {stage_barrier(full_, stage), ir_.CreateLoad(word, phase_)});
  // Writes of other threads that this one has waited for become visible to its wgmma.
  if (mapped_ == nullptr) {
    block_.publish();
  } else {
    block_.when(ir_.CreateNot(mapped_), [&] { block_.publish(); });
  }
  parts_.copies.bind_stage(stages_.pipeline,
                           ir_.CreateMul(stage, block_.i32(stages_.pipeline.bytes)));
}

// The stage before the next one, as far as this warp is concerned: its matmul is complete.
void SpecializedWriter::write(const tile::gpu::ReleaseStage& release) {
  const LoopWriter::OpenLoop& loop = parts_.loops.open_loop(release.loop);
  llvm::Value* condition = release.is_last ? ir_.CreateICmpSLT(loop.range.from, loop.range.to)
                                           : ir_.CreateICmpNE(loop.index, loop.range.from);
  llvm::Value* stage = ir_.CreateLoad(ir_.getInt32Ty(), stage_);
  llvm::Value* before =
      ir_.CreateSelect(ir_.CreateICmpEQ(stage, block_.i32(0)), block_.i32(stages_.count - 1),
                       ir_.CreateSub(stage, block_.i32(1)));
  llvm::Value* first = ir_.CreateICmpEQ(block_.thread_bits(0, kLaneBits), block_.i32(0));
  block_.when(ir_.CreateAnd(condition, first), [&] {
    block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared, {stage_barrier(empty_, before)});
  });
  if (!release.is_last) to_next_stage();
}

void SpecializedWriter::write(const tile::gpu::FillConstants& fill) {
  const Operation& op = loop();
  const LoopPipeline& pipeline = stages_.pipeline;
  const AsyncCopy::Operands constants = split_operands(pipeline, fill.loads).first;
  const AsyncCopy::Conditions fits = parts_.copies.conditions_of(op, pipeline);
  const LoopRange range = parts_.bounds.range_of(op);
  for (int stage = 0; stage < stages_.count; ++stage) {
    const AsyncCopy::Copy copy{.index = parts_.bounds.later(range, range.from, stage),
                               .stage = block_.i32(stage * pipeline.bytes),
                               .fits = fits};
    block_.when(ir_.CreateICmpSLT(copy.index, range.to), [&] {
      const auto by_maps = [&] {
        parts_.copies.copy_boxes(op, pipeline, copy,
                                 {.operands = constants,
                                  .mbarrier = stage_barrier(full_, block_.i32(stage)),
                                  .is_last = false});
        return Pieces{};
      };
      const auto by_threads = [&] {
        parts_.copies.copy_iteration(op, constants, copy, [](AsyncCopy::CopiedBy) {});
        return Pieces{};
      };
      if (mapped_ != nullptr) {
        either(mapped_, by_maps, by_threads);
      } else {
        by_threads();
      }
      ir_.CreateStore(block_.i32(stage + 1), started_);
    });
  }
}

void SpecializedWriter::write(const tile::gpu::FillStages& fill) {
  const Operation& op = loop();
  const LoopPipeline& pipeline = stages_.pipeline;
  const AsyncCopy::Conditions fits = parts_.copies.conditions_of(op, pipeline);
  const LoopRange range = parts_.bounds.range_of(op);
  llvm::BasicBlock *before = ir_.GetInsertBlock(), *header = block_.block("rounds"),
                   *inside = block_.block("round"), *after = block_.block("after");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  llvm::PHINode* index = ir_.CreatePHI(range.from->getType(), 2);
  index->addIncoming(range.from, before);
  ir_.CreateCondBr(ir_.CreateICmpSLT(index, range.to), inside, after);
  ir_.SetInsertPoint(inside);
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* stage = ir_.CreateLoad(word, stage_);
  // A stage that was never filled counts as empty: the phase before the first.
  block_.special("mbarrier.wait", {stage_barrier(empty_, stage),
                                   ir_.CreateXor(ir_.CreateLoad(word, phase_), block_.i32(1))});
  llvm::Value* arrived = stage_barrier(full_, stage);
  const AsyncCopy::Copy copy{index, ir_.CreateMul(stage, block_.i32(pipeline.bytes)), fits};
  const auto arrive = [&](AsyncCopy::CopiedBy by) {
    if (by == AsyncCopy::CopiedBy::Chunks) {
      block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_mbarrier_arrive_noinc_shared, {arrived});
    } else {
      block_.publish();
      block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared, {arrived});
    }
  };
  const auto copy_operands = [&](const AsyncCopy::Operands& operands) {
    const auto by_threads = [&] {
      parts_.copies.copy_iteration(op, operands, copy, arrive);
      return Pieces{};
    };
    const auto by_maps = [&] {
      parts_.copies.copy_boxes(op, pipeline, copy, {.operands = operands, .mbarrier = arrived});
      return Pieces{};
    };
    return mapped_ != nullptr ? either(mapped_, by_maps, by_threads) : by_threads();
  };
  if (fill.constants.empty()) {
    copy_operands(pipeline.operands);
  } else {
    llvm::Value* started = ir_.CreateLoad(word, started_);
    either(
        ir_.CreateIsNotNull(started),
        [&] {
          ir_.CreateStore(ir_.CreateSub(started, block_.i32(1)), started_);
          return copy_operands(split_operands(pipeline, fill.constants).second);
        },
        [&] { return copy_operands(pipeline.operands); });
  }
  to_next_stage();
  llvm::Value* next = parts_.bounds.later(range, index, 1);
  index->addIncoming(next, ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
}

void SpecializedWriter::skip_iterations(const WarpTasks& tasks, llvm::Value* program) {
  std::swap(values_.program, program);
  parts_.bodies.write(tasks.skipped);
  std::swap(values_.program, program);
  llvm::Type *word = ir_.getInt32Ty(), *wide = ir_.getInt64Ty();
  const LoopRange range = parts_.bounds.range_of(loop());
  const auto bound = [&](llvm::Value* of) { return ir_.CreateSExt(of, wide); };
  llvm::Value* step =
      ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, bound(range.step), block_.i64(1));
  llvm::Value* length = ir_.CreateBinaryIntrinsic(
      llvm::Intrinsic::smax, ir_.CreateSub(bound(range.to), bound(range.from)), block_.i64(0));
  llvm::Value* iterations =
      ir_.CreateUDiv(ir_.CreateAdd(length, ir_.CreateSub(step, block_.i64(1))), step);
  // Stage and phase repeat after two passes through the stages.
  const int count = stages_.count;
  llvm::Value* further =
      ir_.CreateAdd(ir_.CreateLoad(word, stage_),
                    ir_.CreateTrunc(ir_.CreateURem(iterations, block_.i64(2 * count)), word));
  llvm::Value* wraps = ir_.CreateAnd(ir_.CreateUDiv(further, block_.i32(count)), block_.i32(1));
  ir_.CreateStore(ir_.CreateURem(further, block_.i32(count)), stage_);
  ir_.CreateStore(ir_.CreateXor(ir_.CreateLoad(word, phase_), wraps), phase_);
}

void SpecializedWriter::init_barriers(const WarpTasks& tasks, int groups) {
  full_ = tasks.barriers;
  empty_ = full_ + stages_.count * kBarrierBytes;
  order_ = empty_ + stages_.count * kBarrierBytes;
  llvm::Value* copiers = block_.i32(kProducerThreads);
  if (mapping_.maps > 0) {
    llvm::Function& function = block_.function();
    const auto word =
        static_cast<unsigned>(function.arg_size()) - static_cast<unsigned>(mapping_.maps) - 1;
    mapped_ = ir_.CreateICmpNE(function.getArg(word), block_.i64(0));
    copiers = ir_.CreateSelect(mapped_, block_.i32(1), copiers);
  }
  block_.when(ir_.CreateICmpEQ(block_.thread(), block_.i32(0)), [&] {
    const auto start = [&](std::int64_t first, int number, llvm::Value* arrivals) {
      block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_init_shared,
                       {stage_barrier(first, block_.i32(number)), arrivals});
    };
    llvm::Value* warps = block_.i32(plan_.threads() >> kLaneBits);
    for (int group = 0; group < groups; ++group) start(order_, group, warps);
    for (int stage = 0; stage < stages_.count; ++stage) {
      start(full_, stage, copiers);
      start(empty_, stage, warps);
    }
    block_.publish();
  });
  block_.barrier();
  stage_ = block_.slot(block_.i32(0));
  phase_ = block_.slot(block_.i32(0));
}

void SpecializedWriter::produce(const WarpTasks& tasks, const ProgramRange& programs) {
  const ConsumerGroups groups = consumer_groups_of(plan_.threads());
  block_.restrict_to({.first = plan_.threads() * groups.count,
                      .threads = kProducerThreads,
                      .barrier = kCopyBarrier});
  parts_.copies.place_common_stages(stages_);
  block_.intrinsic(llvm::Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32,
                   {block_.i32(groups.producer_registers)});
  if (mapped_ != nullptr) end_idle_producers(mapped_);
  if (!tasks.producer_start.empty()) {
    started_ = block_.slot(block_.i32(0));
    block_.when(ir_.CreateICmpSLT(programs.first, programs.count), [&] {
      llvm::Value* program = std::exchange(values_.program, programs.first);
      parts_.bodies.write(tasks.producer_start);
      values_.program = program;
    });
  }
  for_programs(programs, [&] { parts_.bodies.write(tasks.producer); });
  ir_.CreateRetVoid();
}

void SpecializedWriter::consume(const WarpTasks& tasks, const ProgramRange& all) {
  const ConsumerGroups groups = consumer_groups_of(plan_.threads());
  block_.restrict_to({.first = 0,
                      .threads = plan_.threads(),
                      .barrier = kComputeBarrier,
                      .groups = groups.count,
                      .own_bytes = tasks.own_bytes});
  parts_.copies.place_common_stages(stages_);
  block_.intrinsic(llvm::Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                   {block_.i32(groups.consumer_registers)});
  llvm::Value* group = block_.group();
  if (group == nullptr) return for_programs(all, [&] { parts_.bodies.write(tasks.consumer); });
  // The first program of the first group waits for nobody: the phase before the first.
  order_phase_ = block_.slot(block_.i32(0));
  ir_.CreateStore(ir_.CreateXor(group, block_.i32(1)), order_phase_);
  group = ir_.CreateZExt(group, ir_.getInt64Ty());
  ProgramRange programs = all;
  programs.first = ir_.CreateAdd(all.first, ir_.CreateMul(all.step, group));
  programs.step = ir_.CreateMul(all.step, block_.i64(kConsumerGroups));
  block_.when(ir_.CreateICmpNE(group, block_.i64(0)), [&] { skip_iterations(tasks, all.first); });
  for_programs(programs, [&] {
    parts_.bodies.write(tasks.consumer);
    skip_iterations(tasks, ir_.CreateAdd(values_.program, all.step));
  });
}

void SpecializedWriter::write(const WarpTasks& tasks) {
  stages_ = tasks.stages;
  const ConsumerGroups groups = consumer_groups_of(plan_.threads());
  llvm::Value* count = parts_.evaluator.pid(Code::Npid, 0);
  init_barriers(tasks, groups.count);
  parts_.bodies.write(tasks.start);
  const ProgramRange programs{
      .count = count,
      .first = parts_.evaluator.pid(Code::Pid, 0),
      .step = ir_.CreateZExt(block_.intrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, {}),
                             ir_.getInt64Ty())};
  llvm::BasicBlock *computes = block_.block("compute"), *copies = block_.block("copy");
  llvm::Value* computing = block_.i32(plan_.threads() * groups.count);
  ir_.CreateCondBr(ir_.CreateICmpULT(block_.thread(), computing), computes, copies);
  ir_.SetInsertPoint(copies);
  produce(tasks, programs);
  ir_.SetInsertPoint(computes);
  consume(tasks, programs);
}

}  // namespace tessera::codegen::ptx
