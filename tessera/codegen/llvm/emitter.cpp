#include "tessera/codegen/llvm/emitter.h"

#include <fmt/format.h>
#include <llvm/IR/MDBuilder.h>

#include "tessera/codegen/llvm/flow.h"

namespace tessera::codegen {

using tile::ValueId;

namespace {

bool is_constant(const llvm::Value* value, std::uint64_t number) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant != nullptr && constant->getValue() == number;
}

}  // namespace

llvm::Value* sum_of(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b) {
  if (is_constant(a, 0)) return b;
  return is_constant(b, 0) ? a : ir.CreateAdd(a, b);
}

llvm::Value* product_of(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b) {
  if (is_constant(a, 1)) return b;
  return is_constant(b, 1) ? a : ir.CreateMul(a, b);
}

llvm::Value* least_of(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b) {
  const auto *x = llvm::dyn_cast<llvm::ConstantInt>(a), *y = llvm::dyn_cast<llvm::ConstantInt>(b);
  if (x != nullptr && y != nullptr) return x->getValue().slt(y->getValue()) ? a : b;
  return a == b ? a : ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
}

llvm::Value* greatest_of(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b) {
  const auto *x = llvm::dyn_cast<llvm::ConstantInt>(a), *y = llvm::dyn_cast<llvm::ConstantInt>(b);
  if (x != nullptr && y != nullptr) return x->getValue().sgt(y->getValue()) ? a : b;
  return a == b ? a : ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
}

Emitter::Emitter(const tile::cpu::ScheduledKernel& s, const machine::Machine& m,
                 const EmitOptions& o, llvm::LLVMContext& context)
    : scheduled(s),
      kernel(s.kernel),
      machine(m),
      options(o),
      definition(tile::definitions(s.kernel)),
      module(std::make_unique<llvm::Module>(s.kernel.name, context)),
      ir(context),
      scalars(s.kernel.values.size(), nullptr) {}

llvm::Type* Emitter::register_type(DType dtype, int width) {
  llvm::Type* element = type_of(dtype, ir.getContext());
  return width == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(width));
}

llvm::Type* Emitter::memory_type(DType dtype, int width) {
  return register_type(dtype == DType::Bool ? DType::U8 : dtype, width);
}

llvm::Type* Emitter::scalar_type(ValueId id) {
  return type(id).is_pointer() ? llvm::PointerType::getUnqual(ir.getContext())
                               : register_type(type(id).dtype);
}

llvm::Constant* Emitter::literal(DType dtype, const tile::Literal& literal) {
  llvm::Type* type = register_type(dtype);
  if (is_float(dtype)) return llvm::ConstantFP::get(type, literal.number);
  if (dtype == DType::Bool) return llvm::ConstantInt::get(type, literal.integer != 0 ? 1 : 0);
  return llvm::ConstantInt::get(type, static_cast<std::uint64_t>(literal.integer));
}

llvm::Value* Emitter::as_index(llvm::IRBuilderBase& at, ValueId id) {
  return at.CreateIntCast(scalars[id], at.getInt64Ty(), is_signed(type(id).dtype));
}

void Emitter::mark(llvm::Instruction* access, int buffer) {
  if (buffer < 0) return;
  llvm::MDBuilder metadata(ir.getContext());
  llvm::MDNode* type = metadata.createTBAAScalarTypeNode(fmt::format("buffer {}", buffer),
                                                         metadata.createTBAARoot("scratch"));
  access->setMetadata(llvm::LLVMContext::MD_tbaa, metadata.createTBAAStructTagNode(type, type, 0));
}

llvm::Value* Emitter::load(llvm::IRBuilderBase& at, DType dtype, llvm::Value* pointer, int width,
                           int buffer) {
  llvm::LoadInst* loaded =
      at.CreateAlignedLoad(memory_type(dtype, width), pointer,
                           llvm::Align(static_cast<std::uint64_t>(byte_width(dtype))));
  mark(loaded, buffer);
  if (dtype != DType::Bool) return loaded;
  return at.CreateICmpNE(loaded, llvm::Constant::getNullValue(loaded->getType()));
}

void Emitter::store(llvm::IRBuilderBase& at, DType dtype, llvm::Value* pointer, llvm::Value* x,
                    int buffer) {
  if (dtype == DType::Bool) {
    x = at.CreateZExt(x, x->getType()->getWithNewType(at.getInt8Ty()));
  }
  mark(
      at.CreateAlignedStore(x, pointer, llvm::Align(static_cast<std::uint64_t>(byte_width(dtype)))),
      buffer);
}

llvm::AllocaInst* Emitter::slot(llvm::Type* type) {
  llvm::BasicBlock& entry = function->getEntryBlock();
  return llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(type);
}

std::int64_t Emitter::per_program(ValueId id) {
  if (!forms_) forms_.emplace(kernel);
  for (const tile::AffineScalar::Term& term : forms_->of(id).terms) {
    if (!definition[term.variable]) continue;
    const tile::Operation& made = kernel.ops[*definition[term.variable]];
    if (made.code == tile::Code::Pid && made.ints[0] == 0) return term.factor;
  }
  return 0;
}

llvm::BasicBlock* Emitter::block(const char* name) {
  return llvm::BasicBlock::Create(ir.getContext(), name, function);
}

void Emitter::loop(llvm::Value* from, llvm::Value* to, std::int64_t step,
                   const std::function<void(llvm::Value*)>& body) {
  const auto* first = llvm::dyn_cast<llvm::ConstantInt>(from);
  const auto* last = llvm::dyn_cast<llvm::ConstantInt>(to);
  if (first != nullptr && last != nullptr) {
    if (first->getSExtValue() >= last->getSExtValue()) return;
    if (first->getSExtValue() + step >= last->getSExtValue()) return body(from);
  }
  llvm::BasicBlock* before = ir.GetInsertBlock();
  llvm::BasicBlock *head = block("loop"), *round = block("round"), *after = block("after");
  ir.CreateBr(head);
  ir.SetInsertPoint(head);
  llvm::PHINode* index = ir.CreatePHI(ir.getInt64Ty(), 2);
  index->addIncoming(from, before);
  ir.CreateCondBr(ir.CreateICmpSLT(index, to), round, after);
  ir.SetInsertPoint(round);
  body(index);
  index->addIncoming(ir.CreateNSWAdd(index, this->index(step)), ir.GetInsertBlock());
  ir.CreateBr(head);
  ir.SetInsertPoint(after);
}

void Emitter::branch(llvm::Value* condition, const std::function<void()>& then,
                     const std::function<void()>& otherwise) {
  llvm::BasicBlock *yes = block("then"), *no = otherwise ? block("else") : nullptr,
                   *after = block("after");
  ir.CreateCondBr(condition, yes, no != nullptr ? no : after);
  ir.SetInsertPoint(yes);
  then();
  ir.CreateBr(after);
  if (no != nullptr) {
    ir.SetInsertPoint(no);
    otherwise();
    ir.CreateBr(after);
  }
  ir.SetInsertPoint(after);
}

void Emitter::check(llvm::Value* condition, tile::OpId id) {
  llvm::BasicBlock *bad = block("bad"), *good = block("good");
  ir.CreateCondBr(condition, good, bad);
  ir.SetInsertPoint(bad);
  ir.CreateRet(ir.getInt32(id + 1));
  ir.SetInsertPoint(good);
}

void Emitter::check_address(llvm::Value* pointer, std::int64_t bytes, tile::OpId id) {
  if (!options.checked) return;
  llvm::Value* first = ir.CreatePtrToInt(pointer, ir.getInt64Ty());
  llvm::Value* last = ir.CreateAdd(first, index(bytes));
  llvm::Value* inside = ir.getFalse();
  for (const auto& [begin, end] : memory) {
    inside = ir.CreateOr(inside,
                         ir.CreateAnd(ir.CreateICmpUGE(first, begin), ir.CreateICmpULE(last, end)));
  }
  check(inside, id);
}

}  // namespace tessera::codegen
