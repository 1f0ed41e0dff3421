#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tessera/codegen/llvm/math.h"
#include "tessera/codegen/llvm/object.h"
#include "tessera/support/check.h"

namespace tessera::codegen {

/// A loop over arrays that applies what `body` emits to `pieces` vectors of `lanes` elements per
/// turn. Bools are bytes in the arrays. One lane means scalars.
struct MapLoop {
  std::vector<DType> in;
  DType out = DType::F32;
  unsigned lanes = 4, pieces = 2;
  std::function<Pieces(llvm::IRBuilderBase&, std::span<const Pieces>)> body;
  std::optional<std::string> features = {};  // to emit for, if not for those of the machine

  std::uint64_t step() const { return lanes * pieces; }

  static MapLoop of_map(tile::Function function, DType dtype, Precision precision,
                        unsigned lanes = 4, unsigned pieces = 2) {
    std::vector<DType> in(static_cast<std::size_t>(tile::arity(function)), dtype);
    if (function == tile::Function::Select) in[0] = DType::Bool;
    return {std::move(in), tile::is_compare(function) ? DType::Bool : dtype, lanes, pieces,
            [=](llvm::IRBuilderBase& ir, std::span<const Pieces> operands) {
              return emit_map(ir, function, dtype, operands, precision);
            }};
  }

  static MapLoop of_cast(DType from, DType to, unsigned lanes = 4, unsigned pieces = 2) {
    return {{from}, to, lanes, pieces, [=](llvm::IRBuilderBase& ir, std::span<const Pieces> x) {
              return emit_cast(ir, x[0], from, to);
            }};
  }
};

/// A dtype and the C++ type that stores it.
template <DType kDType, class T>
struct StoredAs {
  static constexpr DType dtype = kDType;
  using Number = T;
};

inline llvm::Type* stored_type(DType dtype, llvm::IRBuilderBase& ir) {
  switch (dtype) {
    case DType::F16: return ir.getHalfTy();
    case DType::BF16: return ir.getBFloatTy();
    case DType::F32: return ir.getFloatTy();
    case DType::F64: return ir.getDoubleTy();
    default: return ir.getIntNTy(static_cast<unsigned>(8 * byte_width(dtype)));
  }
}

/// void map(const void* x, const void* y, const void* z, void* out, int64 n), n a positive multiple
/// of the step.
inline std::unique_ptr<llvm::Module> module_of(const MapLoop& loop, const machine::Machine& machine,
                                               llvm::LLVMContext& context) {
  auto module = std::make_unique<llvm::Module>("map", context);
  llvm::IRBuilder<> ir(context);
  llvm::Type* const pointer = ir.getPtrTy();
  auto* const function = llvm::Function::Create(
      llvm::FunctionType::get(ir.getVoidTy(), {pointer, pointer, pointer, pointer, ir.getInt64Ty()},
                              false),
      llvm::Function::ExternalLinkage, "map", *module);
  function->addFnAttr("target-features", loop.features.value_or(machine::llvm_features(machine)));
  const auto typed = [&](llvm::Type* element) -> llvm::Type* {
    if (loop.lanes == 1) return element;
    return llvm::FixedVectorType::get(element, loop.lanes);
  };
  const auto at = [&](DType dtype, unsigned argument, llvm::Value* i, unsigned piece) {
    llvm::Value* const index = ir.CreateAdd(i, ir.getInt64(piece * loop.lanes));
    return ir.CreateGEP(stored_type(dtype, ir), function->getArg(argument), index);
  };

  auto* const entry = llvm::BasicBlock::Create(context, "entry", function);
  auto* const head = llvm::BasicBlock::Create(context, "head", function);
  auto* const done = llvm::BasicBlock::Create(context, "done", function);
  ir.SetInsertPoint(entry);
  ir.CreateBr(head);
  ir.SetInsertPoint(head);
  auto* const i = ir.CreatePHI(ir.getInt64Ty(), 2);
  i->addIncoming(ir.getInt64(0), entry);
  std::vector<Pieces> operands;
  for (unsigned k = 0; k < loop.in.size(); ++k) {
    Pieces& operand = operands.emplace_back();
    for (unsigned p = 0; p < loop.pieces; ++p) {
      llvm::Type* const type = typed(stored_type(loop.in[k], ir));
      llvm::Value* x = ir.CreateAlignedLoad(type, at(loop.in[k], k, i, p), llvm::Align(1));
      if (loop.in[k] == DType::Bool) x = ir.CreateICmpNE(x, llvm::Constant::getNullValue(type));
      operand.push_back(x);
    }
  }
  const Pieces result = loop.body(ir, operands);
  for (unsigned p = 0; p < loop.pieces; ++p) {
    llvm::Value* x = result[p];
    if (loop.out == DType::Bool) x = ir.CreateZExt(x, typed(ir.getInt8Ty()));
    ir.CreateAlignedStore(x, at(loop.out, 3, i, p), llvm::Align(1));
  }
  llvm::Value* const next = ir.CreateAdd(i, ir.getInt64(loop.step()));
  i->addIncoming(next, ir.GetInsertBlock());
  ir.CreateCondBr(ir.CreateICmpSLT(next, function->getArg(4)), head, done);
  ir.SetInsertPoint(done);
  ir.CreateRetVoid();
  return module;
}

inline std::string assembly_of(const MapLoop& loop, const machine::Machine& machine) {
  llvm::LLVMContext context;
  const auto module = module_of(loop, machine, context);
  auto text = assembly_of(*module, machine);
  TESSERA_CHECK(text.has_value(), "no assembly");
  return *std::move(text);
}

/// A MapLoop as machine code of this computer.
class CompiledMap {
 public:
  explicit CompiledMap(const MapLoop& loop) : step_(loop.step()) {
    llvm::LLVMContext context;
    const auto module = module_of(loop, machine::host(), context);
    auto object = object_of(*module, machine::host());
    TESSERA_CHECK(object.has_value(), "no object code");
    auto image = LoadedObject::load(*object);
    TESSERA_CHECK(image.has_value(), "no image");
    image_ = *image;
    entry_ = reinterpret_cast<Entry*>(image_->address("map"));
  }

  std::uint64_t step() const { return step_; }
  /// On n elements, a multiple of the step.
  void operator()(const void* x, const void* y, const void* z, void* out, std::int64_t n) const {
    entry_(x, y, z, out, n);
  }
  void operator()(const void* x, void* out, std::int64_t n) const {
    entry_(x, nullptr, nullptr, out, n);
  }

 private:
  using Entry = void(const void*, const void*, const void*, void*, std::int64_t);
  std::uint64_t step_;
  std::shared_ptr<const LoadedObject> image_;
  Entry* entry_ = nullptr;
};

}  // namespace tessera::codegen
