#include "tessera/codegen/ptx/row_writer.h"

#include <algorithm>

#include "tessera/codegen/ptx/functions.h"
#include "tessera/tile/passes/cut_rows.h"

namespace tessera::codegen::ptx {

using tile::Code;
using tile::gpu::RowAlignment;

void RowWriter::write(const tile::gpu::Versions& versions) {
  llvm::Value* all = nullptr;
  for (const auto& [id, known] : versions.accesses) {
    const Operation& op = operation(id);
    if (known.constant)
      all = block_.both(all, ir_.CreateICmpUGT(evaluator_.pid(Code::Npid, 0), block_.i64(1)));
    if (known.aligned()) all = block_.both(all, views_.is_aligned(op, known.run));
    for (std::size_t axis = 0; axis < known.inside.size(); ++axis) {
      if (!known.inside[axis]) continue;
      llvm::Value* at = ir_.CreateSExt(scalar(op.in[1 + axis]), ir_.getInt64Ty());
      llvm::Value* extent = view(op.in[0]).extents[axis];
      const tile::Extents& shape = type(op.code == Code::Vload ? op.out[0] : op.in.back()).shape;
      all = block_.both(all, ir_.CreateICmpULT(at, extent));
      if (shape[axis] > 1)
        all =
            block_.both(all, ir_.CreateICmpUGE(ir_.CreateSub(extent, at), block_.i64(shape[axis])));
    }
  }
  if (all != nullptr) {
    llvm::BasicBlock *fast = block_.block("fast"), *slow = block_.block("slow");
    ir_.CreateCondBr(all, fast, slow);
    ir_.SetInsertPoint(fast);
    bodies_.write(versions.fast);
    ir_.CreateRetVoid();
    ir_.SetInsertPoint(slow);
  }
  bodies_.write(versions.general);
}

void RowWriter::find_ranges(RowAlignment alignment) {
  const tile::CutRows& cut = *mapping_.cut;
  // Parts in the middle of the row need no bounds checks; the others check each element, or each
  // access where rows start before a part does.
  llvm::Value *one = block_.i32(1), *none = block_.i32(0);
  parts_ = block_.i32((cut.extent + cut.part - 1) / cut.part);
  middle_ = {.first = none, .step = one, .count = block_.i32(cut.extent / cut.part)};
  rest_ = {.first = middle_.count, .step = one, .count = ir_.CreateSub(parts_, middle_.count)};
  if (alignment == RowAlignment::Shifted) {
    llvm::Value* elements =
        ir_.CreateAdd(properties_.before, block_.i64(cut.extent + cut.part - 1));
    parts_ = ir_.CreateTrunc(ir_.CreateUDiv(elements, block_.i64(cut.part)), ir_.getInt32Ty());
    middle_ = {.first = one,
               .step = one,
               .count = ir_.CreateSub(parts_, block_.i32(2)),
               .before = properties_.before};
    rest_ = {.first = none,
             .step = ir_.CreateSub(parts_, one),
             .count = block_.i32(2),
             .before = properties_.before};
  } else if (alignment == RowAlignment::Unknown) {
    rest_ = {.first = none, .step = one, .count = parts_};
  }
}

void RowWriter::write(const tile::gpu::RowVersion& version) {
  llvm::BasicBlock* others = nullptr;
  if (version.alignment != RowAlignment::Unknown) {
    llvm::Value* when =
        version.alignment == RowAlignment::Aligned ? properties_.aligned : properties_.shifted;
    llvm::BasicBlock* here = block_.block("rows");
    others = block_.block("others");
    ir_.CreateCondBr(ir_.CreateAnd(properties_.is_simple, when), here, others);
    ir_.SetInsertPoint(here);
  }
  find_ranges(version.alignment);
  bodies_.write(version.body);
  if (others == nullptr) return;
  ir_.CreateRetVoid();
  ir_.SetInsertPoint(others);
}

void RowWriter::write(const tile::gpu::PartLoop& loop) {
  const tile::CutRows& cut = *mapping_.cut;
  if (loop.is_first)
    for (const OpId id : loop.folds) partial_[id] = reductions_.neutral(operation(id));
  PartRange range = loop.is_middle ? middle_ : rest_;
  if (loop.is_reversible) {
    llvm::Value* last = ir_.CreateSub(parts_, block_.i32(1));
    range.first = ir_.CreateSelect(properties_.backwards, last, range.first);
    range.step = ir_.CreateSelect(properties_.backwards, block_.i32(-1), range.step);
  }
  llvm::BasicBlock *before = ir_.GetInsertBlock(), *header = block_.block("parts"),
                   *body = block_.block("part"), *after = block_.block("row");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  llvm::PHINode* number = ir_.CreatePHI(ir_.getInt32Ty(), 2);
  number->addIncoming(block_.i32(0), before);
  Pieces start;
  for (const OpId id : loop.folds) start.push_back(partial_.at(id));
  const std::vector<llvm::PHINode*> carried = carry(start, before);
  ir_.CreateCondBr(ir_.CreateICmpULT(number, range.count), body, after);

  ir_.SetInsertPoint(body);
  values_.part = ir_.CreateAdd(range.first, ir_.CreateMul(number, range.step));
  llvm::Value* column =
      ir_.CreateMul(ir_.CreateSExt(values_.part, ir_.getInt64Ty()), block_.i64(cut.part));
  define(cut.column, range.before == nullptr ? column : ir_.CreateSub(column, range.before));
  for (std::size_t i = 0; i < carried.size(); ++i) partial_[loop.folds[i]] = carried[i];
  bodies_.write(loop.body);
  for (std::size_t i = 0; i < carried.size(); ++i) {
    carried[i]->addIncoming(partial_.at(loop.folds[i]), ir_.GetInsertBlock());
    partial_[loop.folds[i]] = carried[i];
  }
  number->addIncoming(ir_.CreateAdd(number, block_.i32(1)), ir_.GetInsertBlock());
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
}

void RowWriter::write(const tile::gpu::ReducePart& reduce) {
  const Operation& op = operation(reduce.op);
  const int axis = static_cast<int>(op.ints[0]);
  const Layout& layout = reduce.layout;
  Pieces level = tile(op.in[0], layout);
  const DType of = reductions_.part_type(op);
  if (of != dtype(op.in[0])) level = emit_conversion(ir_, level, dtype(op.in[0]), of);
  if (reduce.is_masked) {
    llvm::Value* none = reductions_.neutral(op);
    for (int reg = 0; reg < layout.registers(); ++reg) {
      llvm::Value*& value = level[static_cast<std::size_t>(reg)];
      value = ir_.CreateSelect(views_.within_row(layout, axis, reg), value, none);
    }
  }
  if (reduce.fma && level.size() > 1) {
    std::vector<int> registers;
    for (int reg = 0; reg < layout.registers(); ++reg) registers.push_back(reg);
    level = reductions_.fused_sums(op, layout, level, registers);
  }
  while (level.size() > 1) {  // a tree: short chains, small errors
    Pieces upper;
    for (std::size_t i = 0; i < level.size(); i += 2)
      upper.push_back(reductions_.combine(op, {level[i]}, {level[i + 1]}).front());
    level = std::move(upper);
  }
  llvm::Value*& partial = partial_.at(reduce.op);
  partial = reductions_.combine(op, {partial}, {level.front()}).front();
}

void RowWriter::write(const tile::gpu::FinishParts& finish) {
  for (std::size_t i = 0; i < finish.ops.size(); ++i) {
    const Operation& op = operation(finish.ops[i]);
    const Layout& layout = *finish.operands[i].layout;
    const DType of = reductions_.part_type(op);
    reductions_.start(finish.ops[i], layout,
                      {.rest = layout,
                       .lane_bits = {},
                       .warp_bits = {},
                       .types = {of},
                       .parts = {{partial_.at(finish.ops[i])}},
                       .padded = false,
                       .wide = of != dtype(op.in[0])});
  }
}

}  // namespace tessera::codegen::ptx
