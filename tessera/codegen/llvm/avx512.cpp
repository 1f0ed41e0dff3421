#include "tessera/codegen/llvm/avx512.h"

#include "tessera/codegen/llvm/flow.h"

namespace tessera::codegen::avx512 {
namespace {

/// Calls an AVX-512 intrinsic: `values`, then the pass-through operand of masked lanes, the mask,
/// and the rounding mode, here the current one. Lanes that are not `kept` become 0.
llvm::Value* emit(const Lanes& x, const char* name, std::initializer_list<llvm::Value*> values,
                  llvm::Value* kept = nullptr) {
  constexpr unsigned as_it_is = 4;
  llvm::IRBuilderBase& ir = x.ir();
  llvm::IntegerType* mask = ir.getIntNTy(512 / x.bits());
  llvm::SmallVector<llvm::Value*, 6> arguments(values);
  if (kept == nullptr)
    arguments.append({llvm::PoisonValue::get(x.type()), llvm::ConstantInt::getAllOnesValue(mask)});
  else
    arguments.append({llvm::Constant::getNullValue(x.type()), ir.CreateBitCast(kept, mask)});
  arguments.push_back(ir.getInt32(as_it_is));
  const std::string full =
      std::string("llvm.x86.avx512.mask.") + name + (x.is_double() ? ".pd.512" : ".ps.512");
  return ir.CreateCall(intrinsic_named(*ir.GetInsertBlock()->getModule(), full), arguments);
}

}  // namespace

bool takes(const Lanes& x) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x.type());
  return vector != nullptr && vector->getNumElements() * x.bits() == 512 && x.is_float() &&
         x.bits() >= 32 && target_has(x, {"avx512dq"});
}

Lanes fraction(const Lanes& x) {
  constexpr unsigned nearest = 8;  // to even, of no binary digits, and no exceptions
  return each_piece([&](auto* a) { return emit(x, "reduce", {a, x.ir().getInt32(nearest)}); }, x);
}

Lanes scaled(const Lanes& x, const Lanes& n) {
  return each_piece([&](auto* a, auto* b) { return emit(x, "scalef", {a, b}); }, x, n);
}

Lanes scaled_or_zero(const Lanes& x, const Lanes& n, const Lanes& kept) {
  return each_piece(
      [&](auto* a, auto* b, auto* mask) {
        return emit(x, "scalef", {a, b}, mask);
      },
      x, n, kept);
}

Lanes quotient(const Lanes& a, const Lanes& b) {
  const Lanes near = each_piece(
      [&](auto* x) {
        llvm::IRBuilderBase& ir = b.ir();
        llvm::Function* function =
            intrinsic_named(*ir.GetInsertBlock()->getModule(), "llvm.x86.avx512.rcp14.ps.512");
        return ir.CreateCall(function, {x, llvm::PoisonValue::get(b.type()),
                                        llvm::ConstantInt::getAllOnesValue(ir.getInt16Ty())});
      },
      b);
  const Lanes first = a * near;
  return fma(fma(-b, first, a), near, first);
}

}  // namespace tessera::codegen::avx512
