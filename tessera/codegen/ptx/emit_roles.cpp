#include <llvm/IR/IntrinsicsNVPTX.h>

#include "tessera/codegen/ptx/emitter.h"

// A kernel around one loop of products: some threads of a block fill the ring, the others multiply
// and do all else. They meet at barriers in shared memory, two for each stage, so that copies for
// the next program of the grid are made while the results of this one are written.

namespace tessera::codegen::ptx {

using tile::Code;
using tile::gpu::kCopyThreads;
using tile::gpu::Teams;
using tile::gpu::teams_of;

namespace {

constexpr int kCopyBarrier = 1, kComputeBarrier = 2;
constexpr int kTeams = 2;
constexpr std::int64_t kBarrierBytes = 8;

}  // namespace

bool Emitter::filled_by_others(const Operation& loop) const {
  return roles_ && &loop == &kernel_.ops[roles_->loop];
}

llvm::Value* Emitter::stage_barrier(std::int64_t first, llvm::Value* stage) {
  return block_.shared(block_.common(
      ir_.CreateAdd(block_.i32(first), ir_.CreateMul(stage, block_.i32(kBarrierBytes)))));
}

void Emitter::to_next_stage() {
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* next = ir_.CreateAdd(ir_.CreateLoad(word, roles_->stage), block_.i32(1));
  llvm::Value* wraps = ir_.CreateICmpEQ(next, block_.i32(stages_));
  llvm::Value* phase = ir_.CreateLoad(word, roles_->phase);
  ir_.CreateStore(ir_.CreateSelect(wraps, block_.i32(0), next), roles_->stage);
  ir_.CreateStore(ir_.CreateXor(phase, ir_.CreateZExt(wraps, word)), roles_->phase);
}

// Barriers know the phase before this one from those after it by parity alone: a team asks for a
// stage only when all stages before it have been asked for.
void Emitter::await_turn() {
  if (block_.team() == nullptr) return;
  llvm::Value* parity = ir_.CreateLoad(ir_.getInt32Ty(), roles_->turn);
  block_.special("mbarrier.wait", {stage_barrier(roles_->turns, block_.team()), parity});
  ir_.CreateStore(ir_.CreateXor(parity, block_.i32(1)), roles_->turn);
}

void Emitter::pass_turn() {
  if (block_.team() == nullptr) return;
  llvm::Value* first = ir_.CreateICmpEQ(block_.thread_bits(0, kLaneBits), block_.i32(0));
  block_.when(first, [&] {
    llvm::Value* other = ir_.CreateXor(block_.team(), block_.i32(1));
    block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared,
                     {stage_barrier(roles_->turns, other)});
  });
}

/// Bytes to the stage that comes next, once it is there.
llvm::Value* Emitter::arrived_stage() {
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* stage = ir_.CreateLoad(word, roles_->stage);
  block_.special("mbarrier.wait",
                 {stage_barrier(roles_->arrived, stage), ir_.CreateLoad(word, roles_->phase)});
  // What other threads wrote and this one has waited for, its products may read.
  if (roles_->mapped == nullptr) {
    publish();
  } else {
    block_.when(ir_.CreateNot(roles_->mapped), [&] { publish(); });
  }
  return ir_.CreateMul(stage, block_.i32(roles_->ahead.bytes));
}

/// The stage before the one that comes next may be filled again, as far as this warp goes.
void Emitter::leave_stage(llvm::Value* condition) {
  llvm::Value* stage = ir_.CreateLoad(ir_.getInt32Ty(), roles_->stage);
  llvm::Value* before =
      ir_.CreateSelect(ir_.CreateICmpEQ(stage, block_.i32(0)), block_.i32(stages_ - 1),
                       ir_.CreateSub(stage, block_.i32(1)));
  llvm::Value* first = ir_.CreateICmpEQ(block_.thread_bits(0, kLaneBits), block_.i32(0));
  block_.when(ir_.CreateAnd(condition, first), [&] {
    block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared,
                     {stage_barrier(roles_->left, before)});
  });
}

void Emitter::fill_ring() {
  const Operation& op = kernel_.ops[roles_->loop];
  for (const tile::OpId id : roles_->needed) operation(kernel_.ops[id]);
  const Fits fits = how_it_fits(op, roles_->ahead);
  const Span span = span_of(op);
  llvm::BasicBlock *before = ir_.GetInsertBlock(), *header = block_.block("rounds"),
                   *inside = block_.block("round"), *after = block_.block("after");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  llvm::PHINode* index = ir_.CreatePHI(span.from->getType(), 2);
  index->addIncoming(span.from, before);
  ir_.CreateCondBr(ir_.CreateICmpSLT(index, span.to), inside, after);
  ir_.SetInsertPoint(inside);
  llvm::Type* word = ir_.getInt32Ty();
  llvm::Value* stage = ir_.CreateLoad(word, roles_->stage);
  // All have left a stage that nobody has entered: the phase before the first.
  block_.special("mbarrier.wait",
                 {stage_barrier(roles_->left, stage),
                  ir_.CreateXor(ir_.CreateLoad(word, roles_->phase), block_.i32(1))});
  llvm::Value* arrived = stage_barrier(roles_->arrived, stage);
  const Copy copy{index, ir_.CreateMul(stage, block_.i32(roles_->ahead.bytes)), fits};
  const auto arrive = [&](CopiedBy by) {
    if (by == CopiedBy::Chunks) {
      block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_mbarrier_arrive_noinc_shared, {arrived});
    } else {
      publish();
      block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_shared, {arrived});
    }
  };
  const auto by_threads = [&] {
    copy_round(op, roles_->ahead, copy, arrive);
    return Pieces{};
  };
  const auto by_maps = [&] {
    copy_boxes(op, copy, arrived);
    return Pieces{};
  };
  if (roles_->mapped != nullptr) {
    either(roles_->mapped, by_maps, by_threads);
  } else {
    by_threads();
  }
  to_next_stage();
  llvm::Value* next = later(span, index, 1);
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
    if (id == roles_->loop) {
      for (const auto& early : roles_->early) {
        for (const tile::OpId number : early.numbers) once(number);
        once(early.load);
      }
    }
    once(id);
  }
}

/// The rounds of a program that another team computes.
void Emitter::skip_rounds(llvm::Value* program) {
  const Operation& op = kernel_.ops[roles_->loop];
  const std::vector<llvm::Value*> scalars = scalars_;
  const std::map<ValueId, View> views = views_;
  std::swap(program_, program);
  for (const tile::OpId id : roles_->needed) operation(kernel_.ops[id]);
  std::swap(program_, program);
  llvm::Type *word = ir_.getInt32Ty(), *wide = ir_.getInt64Ty();
  const Span span = span_of(op);
  const auto bound = [&](llvm::Value* of) { return ir_.CreateSExt(of, wide); };
  llvm::Value* step =
      ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, bound(span.step), block_.i64(1));
  llvm::Value* length = ir_.CreateBinaryIntrinsic(
      llvm::Intrinsic::smax, ir_.CreateSub(bound(span.to), bound(span.from)), block_.i64(0));
  llvm::Value* rounds =
      ir_.CreateUDiv(ir_.CreateAdd(length, ir_.CreateSub(step, block_.i64(1))), step);
  // Twice the ring is nothing.
  llvm::Value* further =
      ir_.CreateAdd(ir_.CreateLoad(word, roles_->stage),
                    ir_.CreateTrunc(ir_.CreateURem(rounds, block_.i64(2 * stages_)), word));
  llvm::Value* turns = ir_.CreateAnd(ir_.CreateUDiv(further, block_.i32(stages_)), block_.i32(1));
  ir_.CreateStore(ir_.CreateURem(further, block_.i32(stages_)), roles_->stage);
  ir_.CreateStore(ir_.CreateXor(ir_.CreateLoad(word, roles_->phase), turns), roles_->phase);
  scalars_ = scalars;
  views_ = views;
}

void Emitter::place_ring(std::int64_t offset) {
  for (const Ring& ring : roles_->ahead.rings)
    rings_[ring.load] = block_.common(block_.i32(offset + ring.offset));
}

void Emitter::compute(const Turns& all) {
  llvm::Value* team = block_.team();
  if (team == nullptr) return for_programs(all, [&] { compute_program(); });
  // The first of the first team waits for nobody: the phase before the first.
  roles_->turn = block_.slot(block_.i32(0));
  ir_.CreateStore(ir_.CreateXor(team, block_.i32(1)), roles_->turn);
  team = ir_.CreateZExt(team, ir_.getInt64Ty());
  Turns turns = all;
  turns.first = ir_.CreateAdd(all.first, ir_.CreateMul(all.step, team));
  turns.step = ir_.CreateMul(all.step, block_.i64(kTeams));
  block_.when(ir_.CreateICmpNE(team, block_.i64(0)), [&] { skip_rounds(all.first); });
  for_programs(turns, [&] {
    compute_program();
    skip_rounds(ir_.CreateAdd(program_, all.step));
  });
}

void Emitter::by_roles(llvm::Value* count) {
  const Teams teams = teams_of(plan_.threads());
  const int computing = plan_.threads() * teams.count;
  const std::int64_t ring = block_.reserve(roles_->ahead.bytes * stages_);
  roles_->arrived = block_.reserve(kSharedAlignment);
  roles_->left = roles_->arrived + stages_ * kBarrierBytes;
  roles_->turns = roles_->left + stages_ * kBarrierBytes;
  llvm::Value* copiers = block_.i32(kCopyThreads);
  if (shape_.maps > 0) {
    llvm::Function& function = block_.function();
    const auto word =
        static_cast<unsigned>(function.arg_size()) - static_cast<unsigned>(shape_.maps) - 1;
    roles_->mapped = ir_.CreateICmpNE(function.getArg(word), block_.i64(0));
    copiers = ir_.CreateSelect(roles_->mapped, block_.i32(1), copiers);
  }
  block_.when(ir_.CreateICmpEQ(block_.thread(), block_.i32(0)), [&] {
    const auto start = [&](std::int64_t first, int number, llvm::Value* arrivals) {
      block_.intrinsic(llvm::Intrinsic::nvvm_mbarrier_init_shared,
                       {stage_barrier(first, block_.i32(number)), arrivals});
    };
    llvm::Value* warps = block_.i32(plan_.threads() >> kLaneBits);
    for (int team = 0; team < teams.count; ++team) start(roles_->turns, team, warps);
    for (int stage = 0; stage < stages_; ++stage) {
      start(roles_->arrived, stage, copiers);
      start(roles_->left, stage, warps);
    }
    publish();
  });
  block_.barrier();
  roles_->stage = block_.slot(block_.i32(0));
  roles_->phase = block_.slot(block_.i32(0));

  const Turns turns{
      .count = count,
      .first = pid(Code::Pid, 0),
      .step = ir_.CreateZExt(block_.intrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, {}),
                             ir_.getInt64Ty())};
  llvm::BasicBlock *computes = block_.block("compute"), *copies = block_.block("copy");
  ir_.CreateCondBr(ir_.CreateICmpULT(block_.thread(), block_.i32(computing)), computes, copies);
  ir_.SetInsertPoint(copies);
  block_.become({.first = computing, .threads = kCopyThreads, .barrier = kCopyBarrier});
  place_ring(ring);
  block_.intrinsic(llvm::Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32,
                   {block_.i32(teams.copy_registers)});
  const std::vector<llvm::Value*> scalars = scalars_;
  const std::map<ValueId, View> views = views_;
  if (roles_->mapped != nullptr) {
    // One thread asks the GPU for all boxes.
    llvm::BasicBlock *some = block_.block("some"), *idle = block_.block("idle");
    llvm::Value* first = ir_.CreateICmpEQ(block_.thread(), block_.i32(0));
    ir_.CreateCondBr(ir_.CreateOr(ir_.CreateNot(roles_->mapped), first), some, idle);
    ir_.SetInsertPoint(idle);
    ir_.CreateRetVoid();
    ir_.SetInsertPoint(some);
  }
  for_programs(turns, [&] { fill_ring(); });
  scalars_ = scalars;
  views_ = views;

  ir_.SetInsertPoint(computes);
  block_.become({.first = 0,
                 .threads = plan_.threads(),
                 .barrier = kComputeBarrier,
                 .teams = teams.count,
                 .own_bytes = shape_.own_bytes});
  place_ring(ring);
  block_.intrinsic(llvm::Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                   {block_.i32(teams.compute_registers)});
  compute(turns);
  own_bytes_ = teams.count > 1 ? block_.scratch_bytes() : 0;
  more_bytes_ = own_bytes_ * (teams.count - 1);
}

}  // namespace tessera::codegen::ptx
