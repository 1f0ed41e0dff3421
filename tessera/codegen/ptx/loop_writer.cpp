#include "tessera/codegen/ptx/loop_writer.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

namespace tessera::codegen::ptx {

llvm::Value* LoopWriter::OpenLoop::further(Block& block, int by_stages) const {
  llvm::IRBuilder<>& ir = block.ir;
  const std::int64_t all = stages.pipeline.bytes * stages.count,
                     by = stages.pipeline.bytes * (by_stages % stages.count);
  if (stage == nullptr) return block.i32(by);
  if (by == 0) return stage;
  return ir.CreateSelect(ir.CreateICmpUGE(stage, block.i32(all - by)),
                         ir.CreateSub(stage, block.i32(all - by)),
                         ir.CreateAdd(stage, block.i32(by)));
}

void LoopWriter::open(OpId id, const tile::gpu::Stages& stages) {
  const Operation& op = operation(id);
  OpenLoop& loop = loops_[id];
  loop = {.range = bounds_.range_of(op), .stages = stages};
  loop.fits = copies_.conditions_of(op, stages.pipeline);
  copies_.place_stages(stages);
  block_.barrier();  // previous contents have been read
}

void LoopWriter::prefetch(OpId id, int stage, const AsyncCopy::Operands& operands,
                          bool is_published) {
  const OpenLoop& loop = loops_.at(id);
  copies_.prefetch_iteration(operation(id), operands,
                             {.index = bounds_.later(loop.range, loop.range.from, stage),
                              .stage = block_.i32(stage * loop.stages.pipeline.bytes),
                              .fits = loop.fits},
                             is_published);
}

void LoopWriter::write(const tile::gpu::PrefetchConstants& prefetch) {
  open(prefetch.loop, prefetch.stages);
  const auto constants = split_operands(prefetch.stages.pipeline, prefetch.loads).first;
  for (int stage = 0; stage < prefetch.stages.in_flight(); ++stage)
    this->prefetch(prefetch.loop, stage, constants, prefetch.is_published);
}

void LoopWriter::write(const tile::gpu::PrefetchFirst& prefetch) {
  if (prefetch.constants.empty()) open(prefetch.loop, prefetch.stages);
  const auto others = split_operands(prefetch.stages.pipeline, prefetch.constants).second;
  for (int stage = 0; stage < prefetch.stages.in_flight(); ++stage) {
    this->prefetch(prefetch.loop, stage, others, prefetch.is_published);
    copies_.commit();
  }
}

void LoopWriter::write(const tile::gpu::AwaitCopies& await) {
  write(tile::gpu::WaitCopies{.loop = await.loop});
  block_.barrier();
  write(tile::gpu::EnterStage{.loop = await.loop});
}

void LoopWriter::write(const tile::gpu::WaitCopies& wait) {
  block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group,
                   {block_.i32(loops_.at(wait.loop).stages.in_flight() - 1)});
}

void LoopWriter::write(const tile::gpu::EnterStage& enter) {
  OpenLoop& loop = loops_.at(enter.loop);
  loop.next_stage = loop.further(block_, 1);
  copies_.bind_stage(loop.stages.pipeline, loop.stage);
}

void LoopWriter::write(const tile::gpu::OfWarpgroup& of) {
  constexpr int kThreadBits = 7;
  llvm::Value* warpgroup = ir_.CreateLShr(block_.thread(), block_.i32(kThreadBits));
  block_.when(ir_.CreateICmpEQ(warpgroup, block_.i32(of.warpgroup)),
              [&] { bodies_.write(of.body); });
}

void LoopWriter::write(const tile::gpu::PrefetchNext& prefetch) {
  const OpenLoop& loop = loops_.at(prefetch.loop);
  const int ahead = loop.stages.in_flight() + prefetch.further;
  llvm::Value* index = loop.index == nullptr ? loop.range.from : loop.index;
  copies_.prefetch_iteration(operation(prefetch.loop), loop.stages.pipeline.operands,
                             {.index = bounds_.later(loop.range, index, ahead),
                              .stage = loop.further(block_, ahead),
                              .fits = loop.fits},
                             prefetch.is_published);
  copies_.commit();
}

// Tiles of 16-bit elements are carried as words of two, in which they are converted and multiplied.
Pieces LoopWriter::packed(const std::vector<tile::gpu::Fragment>& fragments,
                          const Pieces& registers) {
  Pieces words;
  auto next = registers.begin();
  for (const tile::gpu::Fragment& fragment : fragments) {
    const int count = fragment.layout ? fragment.layout->registers() : 1;
    const int step = is_carried_packed(fragment) ? 2 : 1;
    for (int i = 0; i < count; i += step, next += step)
      words.push_back(step == 1 ? *next : block_.pack({&*next, 2}, dtype(fragment.value)));
  }
  return words;
}

Pieces LoopWriter::unpacked(const std::vector<tile::gpu::Fragment>& fragments,
                            const Pieces& words) {
  Pieces registers;
  auto next = words.begin();
  for (const tile::gpu::Fragment& fragment : fragments) {
    const int count = fragment.layout ? fragment.layout->registers() : 1;
    const bool is_packed = is_carried_packed(fragment);
    for (int i = 0; i < count; i += is_packed ? 2 : 1, ++next) {
      if (!is_packed) {
        registers.push_back(*next);
        continue;
      }
      for (llvm::Value* element : block_.unpack(*next, dtype(fragment.value), 2))
        registers.push_back(element);
    }
  }
  return registers;
}

bool LoopWriter::is_carried_packed(const tile::gpu::Fragment& fragment) const {
  const DType of = dtype(fragment.value);
  return (of == DType::F16 || of == DType::BF16) && fragment.layout &&
         fragment.layout->registers() % 2 == 0;
}

void LoopWriter::write(const tile::gpu::ForLoop& of) {
  const Operation& op = operation(of.op);
  OpenLoop& loop = loops_[of.op];
  loop.range = bounds_.range_of(op);
  Pieces start = packed(of.start, flat(of.start));
  start.push_back(loop.range.from);
  start.push_back(block_.i32(0));
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock *header = block_.block("for"), *body = block_.block("body"),
                   *after = block_.block("after");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  std::vector<llvm::PHINode*> carried = carry(start, before);
  loop.stage = loop.next_stage = carried.back();
  loop.index = carried[carried.size() - 2];
  const Pieces current(carried.begin(), carried.end() - 2);
  ir_.CreateCondBr(ir_.CreateICmpSLT(loop.index, loop.range.to), body, after);

  ir_.SetInsertPoint(body);
  define(op.regions[0].params[0], loop.index);
  bind(of.params, unpacked(of.params, current));
  Pieces next = packed(of.params, bodies_.write(of.body));
  next.push_back(bounds_.later(loop.range, loop.index, 1));
  next.push_back(loop.next_stage);
  for (std::size_t i = 0; i < next.size(); ++i)
    carried[i]->addIncoming(next[i], ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
  bind(of.results, unpacked(of.results, current));
}

void LoopWriter::write(const tile::gpu::WhileLoop& of) {
  const Operation& op = operation(of.op);
  const Pieces start = flat(of.start);
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock *header = block_.block("while"), *body = block_.block("body"),
                   *after = block_.block("after");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  std::vector<llvm::PHINode*> carried = carry(start, before);
  const Pieces current(carried.begin(), carried.end());
  bind(of.params, current);
  bodies_.write(of.condition);
  ir_.CreateCondBr(scalar(operation(op.regions[0].ops.back()).in[0]), body, after);

  ir_.SetInsertPoint(body);
  bind(of.body_params, current);
  const Pieces next = bodies_.write(of.body);
  for (std::size_t i = 0; i < next.size(); ++i)
    carried[i]->addIncoming(next[i], ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
  bind(of.results, current);
}

void LoopWriter::write(const tile::gpu::Branch& branch) {
  const Pieces results = either(
      scalar(operation(branch.op).in[0]), [&] { return bodies_.write(branch.then); },
      [&] { return bodies_.write(branch.otherwise); });
  bind(branch.results, results);
}

}  // namespace tessera::codegen::ptx
