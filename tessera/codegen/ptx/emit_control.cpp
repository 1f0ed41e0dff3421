#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"

namespace tessera::codegen::ptx {

Pieces Emitter::flat(const std::vector<ValueId>& values, const std::vector<ValueId>& homes) {
  Pieces all;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Pieces part =
        type(values[i]).is_scalar() ? Pieces{scalar(values[i])} : tile(values[i], home(homes[i]));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void Emitter::bind(const std::vector<ValueId>& ids, const Pieces& registers) {
  auto next = registers.begin();
  for (const ValueId id : ids) {
    if (type(id).is_scalar()) {
      define(id, *next++);
      continue;
    }
    const Layout layout = home(id);
    define(id, layout, Pieces(next, next + layout.registers()));
    next += layout.registers();
  }
}

std::vector<llvm::PHINode*> Emitter::carry(const Pieces& start, llvm::BasicBlock* from) {
  std::vector<llvm::PHINode*> phis;
  for (llvm::Value* value : start) {
    phis.push_back(ir_.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, from);
  }
  return phis;
}

Pieces Emitter::yields(const tile::Region& part, const std::vector<ValueId>& homes) {
  wait_for_all();
  return flat(kernel_.ops[part.ops.back()].in, homes);
}

Pieces Emitter::either(llvm::Value* condition, const BranchBody& then,
                       const BranchBody& otherwise) {
  llvm::BasicBlock* blocks[2] = {block_.block("then"), block_.block("otherwise")};
  llvm::BasicBlock* after = block_.block("joined");
  ir_.CreateCondBr(condition, blocks[0], blocks[1]);
  Pieces results[2];
  for (const int i : {0, 1}) {
    ir_.SetInsertPoint(blocks[i]);
    open_scope();
    results[i] = i == 0 ? then() : otherwise();
    close_scope();
    blocks[i] = ir_.GetInsertBlock();
    ir_.CreateBr(after);
  }
  ir_.SetInsertPoint(after);
  std::vector<llvm::PHINode*> joined = carry(results[0], blocks[0]);
  for (std::size_t i = 0; i < std::min(joined.size(), results[1].size()); ++i)
    joined[i]->addIncoming(results[1][i], blocks[1]);
  return {joined.begin(), joined.end()};
}

bool Emitter::any_writes(const Operation& op) const {
  bool writes = false;
  for (const tile::Region& inner : op.regions)
    tile::for_each_op(kernel_, inner, [&](tile::OpId id) {
      writes = writes || tile::writes_memory(kernel_.ops[id].code);
    });
  return writes;
}

void Emitter::loop(const Operation& op) {
  wait_for_all();
  bring(op);
  const auto pipeline =
      filled_by_producers(op) ? specialization_->pipeline : pipeline_of(planned_, op, stages_);
  bind(op.out, emit_iterations(op, pipeline ? &*pipeline : nullptr));
}

void Emitter::while_loop(const Operation& op) {
  wait_for_all();
  const bool writes = any_writes(op);
  Pieces start = flat(op.in, op.out);
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock *header = block_.block("while"), *body = block_.block("body"),
                   *after = block_.block("after");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  std::vector<llvm::PHINode*> carried = carry(start, before);
  block_.forget();
  forget_accesses(writes);
  const Pieces current(carried.begin(), carried.end());

  open_scope();
  bind(op.regions[0].params, current);
  region(op.regions[0]);
  llvm::Value* again =
      error_ ? ir_.getFalse() : scalar(kernel_.ops[op.regions[0].ops.back()].in[0]);
  close_scope();
  ir_.CreateCondBr(again, body, after);

  ir_.SetInsertPoint(body);
  open_scope();
  bind(op.regions[1].params, current);
  region(op.regions[1]);
  if (!error_) {
    const Pieces next = yields(op.regions[1], op.out);
    for (std::size_t i = 0; i < next.size(); ++i)
      carried[i]->addIncoming(next[i], ir_.GetInsertBlock());
  }
  close_scope();
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
  block_.forget();
  forget_accesses(writes);
  bind(op.out, current);
}

void Emitter::branch(const Operation& op) {
  wait_for_all();
  const bool writes = any_writes(op);
  const auto part = [&](const tile::Region& branch) {
    block_.forget();
    forget_accesses(writes);
    region(branch);
    return error_ ? Pieces{} : yields(branch, op.out);
  };
  const Pieces results = either(
      scalar(op.in[0]), [&] { return part(op.regions[0]); }, [&] { return part(op.regions[1]); });
  block_.forget();
  forget_accesses(writes);
  if (!error_) bind(op.out, results);
}

}  // namespace tessera::codegen::ptx
