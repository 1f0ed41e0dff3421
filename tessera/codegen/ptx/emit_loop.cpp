#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"

// A loop whose products read tiles straight from memory keeps copies of the next rounds in flight:
// a ring of stages in shared memory, filled by cp.async, which no register passes through.

namespace tessera::codegen::ptx {

using tile::Code;

llvm::Value* Emitter::scalar_at(const Operation& loop, ValueId id, llvm::Value* index) {
  if (id == loop.regions[0].params[0]) return index;
  if (!planned_.made_in(loop, id)) return scalar(id);
  const Operation& op = kernel_.ops[*definitions_[id]];
  if (op.code == Code::Const) return constant(type(id), op.literal);
  std::vector<Pieces> operands;
  for (const ValueId in : op.in) operands.push_back({scalar_at(loop, in, index)});
  return elementwise(op, std::move(operands)).front();
}

/// The carried registers after the last round, once the products that went on are done.
Pieces Emitter::all_finished(const Operation& op, const Ahead& ahead, Pieces carried) {
  const std::vector<ValueId>& yielded = kernel_.ops[op.regions[0].ops.back()].in;
  auto first = carried.begin();
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    const int count = type(op.out[i]).is_scalar() ? 1 : home(op.out[i]).registers();
    if (definitions_[yielded[i]] && ahead.pending.count(*definitions_[yielded[i]]) != 0) {
      const Pieces done = finished({first, first + count}, 0);
      std::copy(done.begin(), done.end(), first);
    }
    first += count;
  }
  if (!filled_by_others(op)) block_.barrier();  // the ring has been read by all
  return carried;
}

Pieces Emitter::rounds(const Operation& op, const Ahead* given) {
  const tile::Region& body_region = op.regions[0];
  const bool writes = any_writes(op);
  const Span span = span_of(op);
  llvm::Value *from = span.from, *to = span.to;
  const auto later = [&](llvm::Value* index, int rounds) {
    return this->later(span, index, rounds);
  };
  Ahead ahead;
  Fits fits;
  std::int64_t reserved = 0;
  const bool alone = given != nullptr && !filled_by_others(op);
  // The round that is copied begins in the stage that all threads have left: that of the last
  // round, or with a product that goes on, of the one before it.
  const int left = given != nullptr && !given->pending.empty() ? 2 : 1;
  const int in_flight = stages_ - left;
  if (given != nullptr) ahead = *given;
  if (given != nullptr && !alone) await_turn();
  if (alone) {
    fits = how_it_fits(op, ahead);
    reserved = ahead.bytes * stages_;
    const std::int64_t offset = block_.reserve(reserved);
    for (const Ring& ring : ahead.rings) rings_[ring.load] = block_.i32(offset + ring.offset);
    block_.barrier();  // what was there has been read
    for (int stage = 0; stage < in_flight; ++stage)
      copy_ahead(op, ahead, {later(from, stage), block_.i32(stage * ahead.bytes), fits});
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
    if (plan_.any_warpgroups()) publish();
    block_.barrier();
    const auto further = [&](int stages) {
      const std::int64_t all = ahead.bytes * stages_, by = ahead.bytes * stages;
      return ir_.CreateSelect(ir_.CreateICmpUGE(stage, block_.i32(all - by)),
                              ir_.CreateSub(stage, block_.i32(all - by)),
                              ir_.CreateAdd(stage, block_.i32(by)));
    };
    copy_ahead(op, ahead, {later(index, in_flight), further(in_flight), fits});
    next_stage = further(1);
  } else if (given != nullptr) {
    stage = arrived_stage();
  }
  for (const Ring& ring : ahead.rings) {
    operands_[kernel_.ops[ring.load].out[0]] = {ring.panels,
                                                ir_.CreateAdd(rings_.at(ring.load), stage)};
  }
  std::swap(pending_, ahead.pending);
  define(body_region.params[0], index);
  bind({body_region.params.begin() + 1, body_region.params.end()}, current);
  region(body_region);
  Pieces next = error_ ? current : yields(body_region, op.out);
  // The product of the round before is done.
  if (given != nullptr && !alone) {
    leave_stage(ir_.CreateICmpNE(index, from));
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
  std::swap(pending_, ahead.pending);
  block_.release(reserved);
  block_.forget();
  forget_accesses(writes);
  if (given != nullptr && !alone) pass_turn();
  if (ahead.pending.empty()) return current;
  Pieces sums = all_finished(op, ahead, current);
  if (!alone) leave_stage(ir_.CreateICmpSLT(from, to));
  return sums;
}

}  // namespace tessera::codegen::ptx
