#include "tessera/codegen/ptx/functions.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

namespace tessera::codegen::ptx {
namespace {

/// exp(x) = 2^(x·log2(e)). The product is rounded; what it loses, e, is a factor 1 + e·ln(2). Past
/// 128 and below -150 the hardware answers infinity and 0 whatever was lost, but there the loss of
/// an infinite product is NaN: it counts for finite powers alone.
llvm::Value* exponential(llvm::IRBuilderBase& ir, llvm::Value* x) {
  llvm::Type* type = x->getType();
  const auto constant = [&](double value) { return llvm::ConstantFP::get(type, value); };
  constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
  constexpr auto kHigh = static_cast<float>(kLog2E);
  constexpr auto kLow = static_cast<float>(kLog2E - static_cast<double>(kHigh));
  const auto fma = [&](llvm::Value* a, llvm::Value* b, llvm::Value* c) {
    return ir.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a, b, c});
  };
  llvm::Value* product = ir.CreateFMul(x, constant(kHigh));
  llvm::Value* lost = fma(x, constant(kHigh), ir.CreateFNeg(product));
  lost = fma(x, constant(kLow), lost);
  llvm::Value* power = ir.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {}, {product});
  llvm::Value* corrected = fma(power, ir.CreateFMul(lost, constant(kLn2)), power);
  llvm::Value* size = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  return ir.CreateSelect(ir.CreateFCmpULT(size, constant(88.0)), corrected, power);
}

}  // namespace

Pieces emit_function(llvm::IRBuilderBase& ir, tile::Function function, DType dtype,
                     std::span<const Pieces> operands, Precision precision) {
  const bool exponentials = function == tile::Function::Exp || function == tile::Function::Exp2;
  if (dtype != DType::F32 || !exponentials)
    return emit_map(ir, function, dtype, operands, precision);
  Pieces results;
  for (llvm::Value* x : operands[0]) {
    results.push_back(function == tile::Function::Exp
                          ? exponential(ir, x)
                          : ir.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {}, {x}));
  }
  return results;
}

}  // namespace tessera::codegen::ptx
