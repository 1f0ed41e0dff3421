#include "tessera/codegen/llvm/functions.h"

namespace tessera::codegen {
namespace {

using Predicate = llvm::CmpInst::Predicate;

/// Loop-carried values.
Lanes phis_of(const Lanes& x) {
  return each_piece([&](llvm::Value*) { return x.ir().CreatePHI(x.type(), 2); }, x);
}

void add_incoming(const Lanes& phis, const Lanes& values, llvm::BasicBlock* from) {
  for (std::size_t i = 0; i < phis.pieces().size(); ++i)
    llvm::cast<llvm::PHINode>(phis.pieces()[i])->addIncoming(values.pieces()[i], from);
}

llvm::Value* any(const Lanes& condition) {
  llvm::IRBuilderBase& ir = condition.ir();
  llvm::Value* result = condition.pieces().front();
  for (llvm::Value* const piece : std::span(condition.pieces()).subspan(1))
    result = ir.CreateOr(result, piece);
  return result->getType()->isVectorTy() ? ir.CreateOrReduce(result) : result;
}

/// x minus a multiple of y: a quotient of 53 bits times y, subtracted by an fma, leaves no more
/// than 53 bits, so nothing is rounded, and x shrinks by a factor of about 2^52.
Lanes reduced_once(const Lanes& x, const Lanes& y) {
  // Subtracts a multiple of y · 2^1000, or y · 2^2000, where the quotient would overflow.
  Lanes step = y;
  for (int i = 0; i < 2; ++i) {
    const Lanes large = compare(Predicate::FCMP_OLT, abs(step), abs(x) * 0x1p-1000);
    step = select(large, step * 0x1p+1000, step);
  }
  return fma(-intrinsic(llvm::Intrinsic::trunc, x / step), step, x);
}

Lanes rem_of_doubles(const Lanes& x, const Lanes& y) {
  llvm::IRBuilderBase& ir = x.ir();
  llvm::BasicBlock* const before = ir.GetInsertBlock();
  llvm::Function* const function = before->getParent();
  llvm::BasicBlock* const after =
      ir.GetInsertPoint() == before->end() && before->getTerminator() == nullptr
          ? llvm::BasicBlock::Create(ir.getContext(), "rem.end", function)
          : before->splitBasicBlock(ir.GetInsertPoint(), "rem.end");
  llvm::BasicBlock* const loop = llvm::BasicBlock::Create(ir.getContext(), "rem", function, after);
  if (llvm::Instruction* const jump = before->getTerminator()) jump->eraseFromParent();
  ir.SetInsertPoint(before);
  ir.CreateBr(loop);

  ir.SetInsertPoint(loop);
  const Lanes rest = phis_of(x);
  const Lanes next = reduced_once(rest, y);
  ir.CreateCondBr(any(compare(Predicate::FCMP_OGE, abs(next), abs(y))), loop, after);
  add_incoming(rest, x, before);
  add_incoming(rest, next, loop);

  ir.SetInsertPoint(after, after->begin());
  // A quotient that was rounded up leaves a rest of the other sign.
  const Lanes other_side =
      compare(Predicate::FCMP_OLT, next * copysign(next.constant(1.0), x), 0.0);
  const Lanes value = copysign(select(other_side, next + copysign(y, x), next), x);
  const Lanes infinite =
      compare(Predicate::FCMP_OEQ, abs(y), std::numeric_limits<double>::infinity()) &
      compare(Predicate::FCMP_ONE, abs(x), std::numeric_limits<double>::infinity());
  return select(infinite, x, value);
}

}  // namespace

Lanes rem(const Lanes& x, const Lanes& y) {
  if (x.is_double()) return rem_of_doubles(x, y);
  llvm::Type* const wide = x.ir().getDoubleTy();
  return rem_of_doubles(x.cast(llvm::Instruction::FPExt, wide),
                        y.cast(llvm::Instruction::FPExt, wide))
      .cast(llvm::Instruction::FPTrunc, x.element());
}

}  // namespace tessera::codegen
