#include "tessera/codegen/ptx/code_writer.h"

#include <llvm/IR/Module.h>

#include <algorithm>

#include "tessera/codegen/ptx/instructions.h"

namespace tessera::codegen::ptx {

Pieces CodeWriter::tile(ValueId id, const Layout& layout) const {
  if (type(id).is_scalar()) return Pieces(static_cast<std::size_t>(layout.registers()), scalar(id));
  const auto found = values_.tiles.find({id, layout});
  TESSERA_CHECK(found != values_.tiles.end(), "{}: a fragment is used before it is made",
                kernel_.name);
  return found->second;
}

Pieces CodeWriter::tile(const tile::gpu::Fragment& fragment) const {
  return fragment.layout ? tile(fragment.value, *fragment.layout) : Pieces{scalar(fragment.value)};
}

void CodeWriter::define(ValueId id, const Layout& layout, Pieces registers) {
  if (type(id).is_scalar()) {
    values_.scalars[id] = registers.front();
    return;
  }
  values_.tiles.insert_or_assign({id, layout}, std::move(registers));
}

Pieces CodeWriter::flat(const std::vector<tile::gpu::Fragment>& fragments) const {
  Pieces all;
  for (const tile::gpu::Fragment& fragment : fragments) {
    const Pieces part = tile(fragment);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void CodeWriter::bind(const std::vector<tile::gpu::Fragment>& fragments, const Pieces& registers) {
  auto next = registers.begin();
  for (const tile::gpu::Fragment& fragment : fragments) {
    if (!fragment.layout) {
      define(fragment.value, *next++);
      continue;
    }
    const int count = fragment.layout->registers();
    define(fragment.value, *fragment.layout, Pieces(next, next + count));
    next += count;
  }
}

std::vector<llvm::PHINode*> CodeWriter::carry(const Pieces& start, llvm::BasicBlock* from) {
  std::vector<llvm::PHINode*> phis;
  for (llvm::Value* value : start) {
    phis.push_back(ir_.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, from);
  }
  return phis;
}

Pieces CodeWriter::either(llvm::Value* condition, const BranchBody& then,
                          const BranchBody& otherwise) {
  llvm::BasicBlock* blocks[2] = {block_.block("then"), block_.block("otherwise")};
  llvm::BasicBlock* after = block_.block("joined");
  ir_.CreateCondBr(condition, blocks[0], blocks[1]);
  Pieces results[2];
  for (const int i : {0, 1}) {
    ir_.SetInsertPoint(blocks[i]);
    results[i] = i == 0 ? then() : otherwise();
    blocks[i] = ir_.GetInsertBlock();
    ir_.CreateBr(after);
  }
  ir_.SetInsertPoint(after);
  std::vector<llvm::PHINode*> joined = carry(results[0], blocks[0]);
  for (std::size_t i = 0; i < std::min(joined.size(), results[1].size()); ++i)
    joined[i]->addIncoming(results[1][i], blocks[1]);
  return {joined.begin(), joined.end()};
}

llvm::Value* CodeWriter::constant(const tile::Type& type, const tile::Literal& literal) {
  llvm::Type* element = block_.element(type.dtype);
  if (is_float(type.dtype)) return llvm::ConstantFP::get(element, literal.number);
  return llvm::ConstantInt::get(element, static_cast<std::uint64_t>(literal.integer));
}

llvm::Value* CodeWriter::global(llvm::Value* address) {
  return ir_.CreateIntToPtr(address, ir_.getPtrTy(kGlobal));
}

// Zeros that out-of-bounds loads read: cheaper than a branch around each load.
llvm::Value* CodeWriter::nowhere() {
  llvm::Module& module = block_.module();
  llvm::GlobalVariable* zeros = module.getGlobalVariable("tessera_zeros", true);
  if (zeros == nullptr) {
    auto* bytes = llvm::ArrayType::get(ir_.getInt8Ty(), kChunk);
    zeros = new llvm::GlobalVariable(module, bytes, false, llvm::GlobalValue::InternalLinkage,
                                     llvm::ConstantAggregateZero::get(bytes), "tessera_zeros",
                                     nullptr, llvm::GlobalValue::NotThreadLocal, kGlobal);
    zeros->setAlignment(llvm::Align(kChunk));
  }
  return ir_.CreatePtrToInt(zeros, ir_.getInt64Ty());
}

}  // namespace tessera::codegen::ptx
