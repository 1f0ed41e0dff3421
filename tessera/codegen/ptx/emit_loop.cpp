#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"

// Software-pipelined loops: a loop whose matmuls read tiles directly from memory prefetches the
// next iterations into a multi-stage buffer in shared memory by cp.async, without registers.

namespace tessera::codegen::ptx {

using tile::Code;

llvm::Value* Emitter::scalar_at(const Operation& loop, ValueId id, llvm::Value* index) {
  if (id == loop.regions[0].params[0]) return index;
  if (!planned_.is_defined_in(loop, id)) return scalar(id);
  const Operation& op = kernel_.ops[*definitions_[id]];
  if (op.code == Code::Const) return constant(type(id), op.literal);
  std::vector<Pieces> operands;
  for (const ValueId in : op.in) operands.push_back({scalar_at(loop, in, index)});
  return elementwise(op, std::move(operands)).front();
}

/// Loop-carried registers after the last iteration, once the overlapped matmuls are complete.
Pieces Emitter::all_finished(const Operation& op, const LoopPipeline& pipeline, Pieces carried) {
  const std::vector<ValueId>& yielded = kernel_.ops[op.regions[0].ops.back()].in;
  auto first = carried.begin();
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    const int count = type(op.out[i]).is_scalar() ? 1 : home(op.out[i]).registers();
    if (definitions_[yielded[i]] && pipeline.pending.count(*definitions_[yielded[i]]) != 0) {
      const Pieces done = finished({first, first + count}, 0);
      std::copy(done.begin(), done.end(), first);
    }
    first += count;
  }
  if (!filled_by_producers(op)) block_.barrier();  // all threads have read the stage buffers
  return carried;
}

Pieces Emitter::emit_iterations(const Operation& op, const LoopPipeline* given) {
  const tile::Region& body_region = op.regions[0];
  const bool writes = any_writes(op);
  const LoopRange range = loop_range(op);
  llvm::Value *from = range.from, *to = range.to;
  const auto later = [&](llvm::Value* index, int iterations) {
    return this->later(range, index, iterations);
  };
  LoopPipeline pipeline;
  CopyConditions fits;
  std::int64_t reserved = 0;
  const bool alone = given != nullptr && !filled_by_producers(op);
  // The prefetched iteration uses the stage that all threads have released: that of the last
  // iteration, or with an overlapped matmul, of the one before it.
  const int left = given != nullptr && !given->pending.empty() ? 2 : 1;
  const int in_flight = stages_ - left;
  if (given != nullptr) pipeline = *given;
  if (given != nullptr && !alone) wait_for_order();
  if (alone) {
    fits = copy_conditions(op, pipeline);
    reserved = pipeline.bytes * stages_;
    const std::int64_t offset = block_.reserve(reserved);
    for (const StagedOperand& staged : pipeline.operands)
      stage_offsets_[staged.load] = block_.i32(offset + staged.offset);
    block_.barrier();  // previous contents have been read
    for (int stage = 0; stage < in_flight; ++stage)
      prefetch_iteration(op, pipeline,
                         {later(from, stage), block_.i32(stage * pipeline.bytes), fits});
  }

  Pieces start = flat({op.in.begin() + 3, op.in.end()}, op.out);
  start.push_back(from);
  start.push_back(block_.i32(0));
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock *header = block_.block("for"), *body = block_.block("body"),
                   *after = block_.block("after");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  std::vector<llvm::PHINode*> carried = carry(start, before);
  llvm::Value *stage = carried.back(), *index = carried[carried.size() - 2];
  const Pieces current(carried.begin(), carried.end() - 2);
  ir_.CreateCondBr(ir_.CreateICmpSLT(index, to), body, after);
  block_.forget();
  forget_accesses(writes);

  ir_.SetInsertPoint(body);
  open_scope();
  auto operands_before = operands_;
  llvm::Value* next_stage = stage;
  if (alone) {
    block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {block_.i32(in_flight - 1)});
    if (plan_.any_wgmma()) publish();
    block_.barrier();
    const auto further = [&](int stages) {
      const std::int64_t all = pipeline.bytes * stages_, by = pipeline.bytes * stages;
      return ir_.CreateSelect(ir_.CreateICmpUGE(stage, block_.i32(all - by)),
                              ir_.CreateSub(stage, block_.i32(all - by)),
                              ir_.CreateAdd(stage, block_.i32(by)));
    };
    prefetch_iteration(op, pipeline, {later(index, in_flight), further(in_flight), fits});
    next_stage = further(1);
  } else if (given != nullptr) {
    stage = full_stage();
  }
  for (const StagedOperand& staged : pipeline.operands) {
    operands_[kernel_.ops[staged.load].out[0]] = {
        staged.panels, ir_.CreateAdd(stage_offsets_.at(staged.load), stage)};
  }
  std::swap(pending_, pipeline.pending);
  define(body_region.params[0], index);
  bind({body_region.params.begin() + 1, body_region.params.end()}, current);
  region(body_region);
  Pieces next = error_ ? current : yields(body_region, op.out);
  // The matmul of the previous iteration is complete.
  if (given != nullptr && !alone) {
    release_stage(ir_.CreateICmpNE(index, from));
    to_next_stage();
  }
  next.push_back(later(index, 1));
  next.push_back(next_stage);
  for (std::size_t i = 0; i < next.size(); ++i)
    carried[i]->addIncoming(next[i], ir_.GetInsertBlock());
  close_scope();
  operands_ = std::move(operands_before);
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
  std::swap(pending_, pipeline.pending);
  block_.release(reserved);
  block_.forget();
  forget_accesses(writes);
  if (given != nullptr && !alone) signal_next_group();
  if (pipeline.pending.empty()) return current;
  Pieces sums = all_finished(op, pipeline, current);
  if (!alone) release_stage(ir_.CreateICmpSLT(from, to));
  return sums;
}

}  // namespace tessera::codegen::ptx
