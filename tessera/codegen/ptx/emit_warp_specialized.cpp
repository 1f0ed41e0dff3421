#include <llvm/IR/IntrinsicsNVPTX.h>

#include "tessera/codegen/ptx/emitter.h"

// Warp specialization of a kernel around one loop of matmuls: producer warps fill the multi-stage
// buffers, consumer warps compute everything else. They synchronize by mbarriers in shared memory,
// two per stage (full and empty), so that copies for the next program overlap with the epilogue of
// the current one.

namespace tessera::codegen::ptx {

using tile::Code;
using tile::gpu::consumer_groups_of;
using tile::gpu::ConsumerGroups;
using tile::gpu::kProducerThreads;

namespace {

constexpr int kCopyBarrier = 1, kComputeBarrier = 2;
constexpr int kConsumerGroups = 2;
constexpr std::int64_t kBarrierBytes = 8;

}  // namespace

bool Emitter::filled_by_producers(const Operation& loop) const {
  return specialization_ && &loop == &kernel_.ops[specialization_->loop];
}

llvm::Value* Emitter::stage_barrier(std::int64_t first, llvm::Value* stage) {
  return block_.shared(block_.common(
      ir_.CreateAdd(block_.i32(first), ir_.CreateMul(stage, block_.i32(kBarrierBytes)))));
}

void Emitter::to_next_stage() {
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* next = ir_.CreateAdd(ir_.CreateLoad(word, specialization_->stage), block_.i32(1));
  llvm::Value* wraps = ir_.CreateICmpEQ(next, block_.i32(stages_));
  llvm::Value* phase = ir_.CreateLoad(word, specialization_->phase);
  ir_.CreateStore(ir_.CreateSelect(wraps, block_.i32(0), next), specialization_->stage);
  ir_.CreateStore(ir_.CreateXor(phase, ir_.CreateZExt(wraps, word)), specialization_->phase);
}

// An mbarrier distinguishes phases by parity only: a consumer group waits for a stage only when all
// stages before it have been waited for.
void Emitter::wait_for_order() {
  if (block_.group() == nullptr) return;
  llvm::Value* parity = ir_.CreateLoad(ir_.getInt32Ty(), specialization_->order_phase);
  block_.special("mbarrier.wait", {stage_barrier(specialization_->order, block_.group()), parity});
  ir_.CreateStore(ir_.CreateXor(parity, block_.i32(1)), specialization_->order_phase);
}

void Emitter::signal_next_group() {
  if (block_.group() == nullptr) return;
  llvm::Value* first = ir_.CreateICmpEQ(block_.thread_bits(0, kLaneBits), block_.i32(0));
  block_.when(first, [&] {
    llvm::Value* other = ir_.CreateXor(block_.group(), block_.i32(1));
    block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared,
                     {stage_barrier(specialization_->order, other)});
  });
}

/// Byte offset of the next stage, once it is full.
llvm::Value* Emitter::full_stage() {
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* stage = ir_.CreateLoad(word, specialization_->stage);
  block_.special("mbarrier.wait", {stage_barrier(specialization_->full, stage),
                                   ir_.CreateLoad(word, specialization_->phase)});
  // Writes of other threads that this one has waited for become visible to its wgmma.
  if (specialization_->mapped == nullptr) {
    publish();
  } else {
    block_.when(ir_.CreateNot(specialization_->mapped), [&] { publish(); });
  }
  return ir_.CreateMul(stage, block_.i32(specialization_->pipeline.bytes));
}

/// Releases the stage before the next one, as far as this warp is concerned.
void Emitter::release_stage(llvm::Value* condition) {
  llvm::Value* stage = ir_.CreateLoad(ir_.getInt32Ty(), specialization_->stage);
  llvm::Value* before =
      ir_.CreateSelect(ir_.CreateICmpEQ(stage, block_.i32(0)), block_.i32(stages_ - 1),
                       ir_.CreateSub(stage, block_.i32(1)));
  llvm::Value* first = ir_.CreateICmpEQ(block_.thread_bits(0, kLaneBits), block_.i32(0));
  block_.when(ir_.CreateAnd(condition, first), [&] {
    block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared,
                     {stage_barrier(specialization_->empty, before)});
  });
}

void Emitter::fill_stages() {
  const Operation& op = kernel_.ops[specialization_->loop];
  for (const tile::OpId id : specialization_->needed) operation(kernel_.ops[id]);
  const CopyConditions fits = copy_conditions(op, specialization_->pipeline);
  const LoopRange range = loop_range(op);
  llvm::BasicBlock *before = ir_.GetInsertBlock(), *header = block_.block("rounds"),
                   *inside = block_.block("round"), *after = block_.block("after");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  llvm::PHINode* index = ir_.CreatePHI(range.from->getType(), 2);
  index->addIncoming(range.from, before);
  ir_.CreateCondBr(ir_.CreateICmpSLT(index, range.to), inside, after);
  ir_.SetInsertPoint(inside);
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* stage = ir_.CreateLoad(word, specialization_->stage);
  // A stage that was never filled counts as empty: the phase before the first.
  block_.special("mbarrier.wait",
                 {stage_barrier(specialization_->empty, stage),
                  ir_.CreateXor(ir_.CreateLoad(word, specialization_->phase), block_.i32(1))});
  llvm::Value* arrived = stage_barrier(specialization_->full, stage);
  const Copy copy{index, ir_.CreateMul(stage, block_.i32(specialization_->pipeline.bytes)), fits};
  const auto arrive = [&](CopiedBy by) {
    if (by == CopiedBy::Chunks) {
      block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_mbarrier_arrive_noinc_shared, {arrived});
    } else {
      publish();
      block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared, {arrived});
    }
  };
  const auto by_threads = [&] {
    copy_iteration(op, specialization_->pipeline, copy, arrive);
    return Pieces{};
  };
  const auto by_maps = [&] {
    copy_boxes(op, copy, arrived);
    return Pieces{};
  };
  if (specialization_->mapped != nullptr) {
    either(specialization_->mapped, by_maps, by_threads);
  } else {
    by_threads();
  }
  to_next_stage();
  llvm::Value* next = later(range, index, 1);
  index->addIncoming(next, ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
}

void Emitter::compute_program() {
  std::set<tile::OpId> done;
  const auto once = [&](tile::OpId id) {
    if (!error_ && done.insert(id).second) operation(kernel_.ops[id]);
  };
  for (const tile::OpId id : kernel_.body.ops) {
    if (id == specialization_->loop) {
      for (const auto& early : specialization_->early) {
        for (const tile::OpId number : early.numbers) once(number);
        once(early.load);
      }
    }
    once(id);
  }
}

/// Advances the stage and phase past the iterations of a program that the other consumer group
/// computes.
void Emitter::skip_iterations(llvm::Value* program) {
  const Operation& op = kernel_.ops[specialization_->loop];
  const std::vector<llvm::Value*> scalars = scalars_;
  const std::map<ValueId, View> views = views_;
  std::swap(program_, program);
  for (const tile::OpId id : specialization_->needed) operation(kernel_.ops[id]);
  std::swap(program_, program);
  llvm::Type *word = ir_.getInt32Ty(), *wide = ir_.getInt64Ty();
  const LoopRange range = loop_range(op);
  const auto bound = [&](llvm::Value* of) { return ir_.CreateSExt(of, wide); };
  llvm::Value* step =
      ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, bound(range.step), block_.i64(1));
  llvm::Value* length = ir_.CreateBinaryIntrinsic(
      llvm::Intrinsic::smax, ir_.CreateSub(bound(range.to), bound(range.from)), block_.i64(0));
  llvm::Value* iterations =
      ir_.CreateUDiv(ir_.CreateAdd(length, ir_.CreateSub(step, block_.i64(1))), step);
  // Stage and phase repeat after two passes through the stages.
  llvm::Value* further =
      ir_.CreateAdd(ir_.CreateLoad(word, specialization_->stage),
                    ir_.CreateTrunc(ir_.CreateURem(iterations, block_.i64(2 * stages_)), word));
  llvm::Value* wraps = ir_.CreateAnd(ir_.CreateUDiv(further, block_.i32(stages_)), block_.i32(1));
  ir_.CreateStore(ir_.CreateURem(further, block_.i32(stages_)), specialization_->stage);
  ir_.CreateStore(ir_.CreateXor(ir_.CreateLoad(word, specialization_->phase), wraps),
                  specialization_->phase);
  scalars_ = scalars;
  views_ = views;
}

void Emitter::place_stages(std::int64_t offset) {
  for (const StagedOperand& staged : specialization_->pipeline.operands)
    stage_offsets_[staged.load] = block_.common(block_.i32(offset + staged.offset));
}

void Emitter::compute(const ProgramRange& all) {
  llvm::Value* group = block_.group();
  if (group == nullptr) return for_programs(all, [&] { compute_program(); });
  // The first program of the first group waits for nobody: the phase before the first.
  specialization_->order_phase = block_.slot(block_.i32(0));
  ir_.CreateStore(ir_.CreateXor(group, block_.i32(1)), specialization_->order_phase);
  group = ir_.CreateZExt(group, ir_.getInt64Ty());
  ProgramRange programs = all;
  programs.first = ir_.CreateAdd(all.first, ir_.CreateMul(all.step, group));
  programs.step = ir_.CreateMul(all.step, block_.i64(kConsumerGroups));
  block_.when(ir_.CreateICmpNE(group, block_.i64(0)), [&] { skip_iterations(all.first); });
  for_programs(programs, [&] {
    compute_program();
    skip_iterations(ir_.CreateAdd(program_, all.step));
  });
}

void Emitter::emit_warp_specialized(llvm::Value* count) {
  const ConsumerGroups groups = consumer_groups_of(plan_.threads());
  const int computing = plan_.threads() * groups.count;
  const std::int64_t stages = block_.reserve(specialization_->pipeline.bytes * stages_);
  specialization_->full = block_.reserve(kSharedAlignment);
  specialization_->empty = specialization_->full + stages_ * kBarrierBytes;
  specialization_->order = specialization_->empty + stages_ * kBarrierBytes;
  llvm::Value* copiers = block_.i32(kProducerThreads);
  if (mapping_.maps > 0) {
    llvm::Function& function = block_.function();
    const auto word =
        static_cast<unsigned>(function.arg_size()) - static_cast<unsigned>(mapping_.maps) - 1;
    specialization_->mapped = ir_.CreateICmpNE(function.getArg(word), block_.i64(0));
    copiers = ir_.CreateSelect(specialization_->mapped, block_.i32(1), copiers);
  }
  block_.when(ir_.CreateICmpEQ(block_.thread(), block_.i32(0)), [&] {
    const auto start = [&](std::int64_t first, int number, llvm::Value* arrivals) {
      block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_init_shared,
                       {stage_barrier(first, block_.i32(number)), arrivals});
    };
    llvm::Value* warps = block_.i32(plan_.threads() >> kLaneBits);
    for (int group = 0; group < groups.count; ++group) start(specialization_->order, group, warps);
    for (int stage = 0; stage < stages_; ++stage) {
      start(specialization_->full, stage, copiers);
      start(specialization_->empty, stage, warps);
    }
    publish();
  });
  block_.barrier();
  specialization_->stage = block_.slot(block_.i32(0));
  specialization_->phase = block_.slot(block_.i32(0));

  const ProgramRange programs{
      .count = count,
      .first = pid(Code::Pid, 0),
      .step = ir_.CreateZExt(block_.intrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, {}),
                             ir_.getInt64Ty())};
  llvm::BasicBlock *computes = block_.block("compute"), *copies = block_.block("copy");
  ir_.CreateCondBr(ir_.CreateICmpULT(block_.thread(), block_.i32(computing)), computes, copies);
  ir_.SetInsertPoint(copies);
  block_.restrict_to({.first = computing, .threads = kProducerThreads, .barrier = kCopyBarrier});
  place_stages(stages);
  block_.intrinsic(llvm::Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32,
                   {block_.i32(groups.producer_registers)});
  const std::vector<llvm::Value*> scalars = scalars_;
  const std::map<ValueId, View> views = views_;
  if (specialization_->mapped != nullptr) {
    // One thread issues all TMA copies.
    llvm::BasicBlock *some = block_.block("some"), *idle = block_.block("idle");
    llvm::Value* first = ir_.CreateICmpEQ(block_.thread(), block_.i32(0));
    ir_.CreateCondBr(ir_.CreateOr(ir_.CreateNot(specialization_->mapped), first), some, idle);
    ir_.SetInsertPoint(idle);
    ir_.CreateRetVoid();
    ir_.SetInsertPoint(some);
  }
  for_programs(programs, [&] { fill_stages(); });
  scalars_ = scalars;
  views_ = views;

  ir_.SetInsertPoint(computes);
  block_.restrict_to({.first = 0,
                      .threads = plan_.threads(),
                      .barrier = kComputeBarrier,
                      .groups = groups.count,
                      .own_bytes = mapping_.own_bytes});
  place_stages(stages);
  block_.intrinsic(llvm::Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                   {block_.i32(groups.consumer_registers)});
  compute(programs);
  own_bytes_ = groups.count > 1 ? block_.scratch_bytes() : 0;
  more_bytes_ = own_bytes_ * (groups.count - 1);
}

}  // namespace tessera::codegen::ptx
