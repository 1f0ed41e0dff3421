#include "tessera/codegen/ptx/loop_writer.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

namespace tessera::codegen::ptx {

llvm::Value* LoopWriter::OpenLoop::further(Block& block, int by_stages) const {
  llvm::IRBuilder<>& ir = block.ir;
  const std::int64_t all = stages.pipeline.bytes * stages.count,
                     by = stages.pipeline.bytes * by_stages;
  return ir.CreateSelect(ir.CreateICmpUGE(stage, block.i32(all - by)),
                         ir.CreateSub(stage, block.i32(all - by)),
                         ir.CreateAdd(stage, block.i32(by)));
}

void LoopWriter::write(const tile::gpu::PrefetchFirst& prefetch) {
  const Operation& op = operation(prefetch.loop);
  OpenLoop& loop = loops_[prefetch.loop];
  loop = {.range = bounds_.range_of(op), .stages = prefetch.stages};
  const LoopPipeline& pipeline = loop.stages.pipeline;
  loop.fits = copies_.conditions_of(op, pipeline);
  copies_.place_stages(loop.stages);
  block_.barrier();  // previous contents have been read
  for (int stage = 0; stage < loop.stages.in_flight(); ++stage)
    copies_.prefetch_iteration(op, pipeline,
                               {.index = bounds_.later(loop.range, loop.range.from, stage),
                                .stage = block_.i32(stage * pipeline.bytes),
                                .fits = loop.fits},
                               prefetch.is_published);
}

void LoopWriter::write(const tile::gpu::AwaitCopies& await) {
  OpenLoop& loop = loops_.at(await.loop);
  block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group,
                   {block_.i32(loop.stages.in_flight() - 1)});
  block_.barrier();
  loop.next_stage = loop.further(block_, 1);
  copies_.bind_stage(loop.stages.pipeline, loop.stage);
}

void LoopWriter::write(const tile::gpu::PrefetchNext& prefetch) {
  const OpenLoop& loop = loops_.at(prefetch.loop);
  const int in_flight = loop.stages.in_flight();
  copies_.prefetch_iteration(operation(prefetch.loop), loop.stages.pipeline,
                             {.index = bounds_.later(loop.range, loop.index, in_flight),
                              .stage = loop.further(block_, in_flight),
                              .fits = loop.fits},
                             prefetch.is_published);
}

void LoopWriter::write(const tile::gpu::ForLoop& of) {
  const Operation& op = operation(of.op);
  OpenLoop& loop = loops_[of.op];
  loop.range = bounds_.range_of(op);
  Pieces start = flat(of.start);
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
  bind(of.params, current);
  Pieces next = bodies_.write(of.body);
  next.push_back(bounds_.later(loop.range, loop.index, 1));
  next.push_back(loop.next_stage);
  for (std::size_t i = 0; i < next.size(); ++i)
    carried[i]->addIncoming(next[i], ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
  bind(of.results, current);
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
