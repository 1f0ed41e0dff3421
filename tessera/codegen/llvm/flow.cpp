#include "tessera/codegen/llvm/flow.h"

#include <llvm/IR/Module.h>

#include <optional>

#include "tessera/support/check.h"

namespace tessera::codegen {
namespace {

/// Constant number of iterations of a loop, if known.
std::optional<std::int64_t> known_turns(llvm::Value* first, llvm::Value* last, std::int64_t step) {
  if (first == last) return 0;
  auto* from = llvm::dyn_cast<llvm::ConstantInt>(first);
  auto* to = llvm::dyn_cast<llvm::ConstantInt>(last);
  if (from == nullptr || to == nullptr) return std::nullopt;
  const std::int64_t length = to->getSExtValue() - from->getSExtValue();
  return length <= 0 ? 0 : (length + step - 1) / step;
}

/// Loop metadata: the code is unrolled already.
void forbid_unrolling(llvm::BranchInst& latch) {
  llvm::LLVMContext& context = latch.getContext();
  llvm::Metadata* no_unroll =
      llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
  llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, no_unroll});
  loop->replaceOperandWith(0, loop);
  latch.setMetadata("llvm.loop", loop);
}

}  // namespace

llvm::Function* shared_function(llvm::Module& module, const std::string& name,
                                llvm::ArrayRef<llvm::Type*> parameters, FunctionBody body) {
  if (llvm::Function* known = module.getFunction(name)) return known;
  llvm::LLVMContext& context = module.getContext();
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), parameters, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::NoInline);
  llvm::IRBuilder<> ir(llvm::BasicBlock::Create(context, "entry", function));
  body(ir, *function);
  ir.CreateRetVoid();
  return function;
}

llvm::Type* type_of(DType dtype, llvm::LLVMContext& context) {
  switch (dtype) {
    case DType::F16: return llvm::Type::getHalfTy(context);
    case DType::BF16: return llvm::Type::getBFloatTy(context);
    case DType::F32: return llvm::Type::getFloatTy(context);
    case DType::F64: return llvm::Type::getDoubleTy(context);
    case DType::Bool: return llvm::Type::getInt1Ty(context);
    default: break;
  }
  TESSERA_CHECK(byte_width(dtype) != 0, "no register holds {}", to_string(dtype));
  return llvm::Type::getIntNTy(context, 8 * static_cast<unsigned>(byte_width(dtype)));
}

Values emit_for(llvm::IRBuilderBase& ir, llvm::Value* first, llvm::Value* last, std::int64_t step,
                Values carried, llvm::function_ref<Values(llvm::Value*, const Values&)> body,
                TripCount trip_count) {
  const std::optional<std::int64_t> known = known_turns(first, last, step);
  if (known && *known == 0) return carried;
  if (known && *known == 1) return body(first, carried);

  llvm::LLVMContext& context = ir.getContext();
  llvm::BasicBlock* before = ir.GetInsertBlock();
  llvm::Function* function = before->getParent();
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context, "done", function);
  llvm::BasicBlock* loop = llvm::BasicBlock::Create(context, "loop", function, after);
  const bool some = known || trip_count == TripCount::AtLeastOne;
  if (some) {
    ir.CreateBr(loop);
  } else {
    ir.CreateCondBr(ir.CreateICmpSLT(first, last), loop, after);
  }

  ir.SetInsertPoint(loop);
  llvm::PHINode* index = ir.CreatePHI(first->getType(), 2);
  index->addIncoming(first, before);
  Values phis;
  for (llvm::Value* value : carried) {
    llvm::PHINode* phi = ir.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, before);
    phis.push_back(phi);
  }
  const Values next = body(index, phis);
  llvm::BasicBlock* latch = ir.GetInsertBlock();
  llvm::Value* next_index = ir.CreateNSWAdd(index, ir.getInt64(static_cast<std::uint64_t>(step)));
  forbid_unrolling(*ir.CreateCondBr(ir.CreateICmpSLT(next_index, last), loop, after));
  index->addIncoming(next_index, latch);
  for (std::size_t i = 0; i < next.size(); ++i)
    llvm::cast<llvm::PHINode>(phis[i])->addIncoming(next[i], latch);

  ir.SetInsertPoint(after);
  Values results;
  for (std::size_t i = 0; i < next.size(); ++i) {
    llvm::PHINode* phi = ir.CreatePHI(next[i]->getType(), 2);
    if (!some) phi->addIncoming(carried[i], before);
    phi->addIncoming(next[i], latch);
    results.push_back(phi);
  }
  return results;
}

void emit_for(llvm::IRBuilderBase& ir, llvm::Value* first, llvm::Value* last, std::int64_t step,
              llvm::function_ref<void(llvm::Value*)> body) {
  emit_for(ir, first, last, step, Values{}, [&](llvm::Value* index, const Values&) {
    body(index);
    return Values{};
  });
}

void emit_prefetch(llvm::IRBuilderBase& ir, llvm::Value* address, const Prefetch& how) {
  // LLVM numbers the caches from the far end.
  ir.CreateIntrinsic(llvm::Intrinsic::prefetch, {ir.getPtrTy()},
                     {address, ir.getInt32(how.writes ? 1 : 0),
                      ir.getInt32(static_cast<std::uint32_t>(4 - how.level)), ir.getInt32(1)});
}

llvm::Function* intrinsic_named(llvm::Module& module, const std::string& name,
                                llvm::ArrayRef<llvm::Type*> overloads) {
  const llvm::Intrinsic::ID id = llvm::Function::lookupIntrinsicID(name);
  TESSERA_CHECK(id != llvm::Intrinsic::not_intrinsic, "{} is not known", name);
  if (!llvm::Intrinsic::isOverloaded(id)) overloads = {};
  return llvm::Intrinsic::getDeclaration(&module, id, overloads);
}

void emit_if(llvm::IRBuilderBase& ir, llvm::Value* condition, llvm::function_ref<void()> then) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (!known->isZero()) then();
    return;
  }
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  llvm::BasicBlock* taken = llvm::BasicBlock::Create(ir.getContext(), "then", function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(ir.getContext(), "endif", function);
  ir.CreateCondBr(condition, taken, after);
  ir.SetInsertPoint(taken);
  then();
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
}

}  // namespace tessera::codegen
