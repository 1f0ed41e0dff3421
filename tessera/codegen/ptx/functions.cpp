#include "tessera/codegen/ptx/functions.h"

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "tessera/codegen/ptx/instructions.h"

namespace tessera::codegen::ptx {
namespace {

llvm::Value* power_of_two(llvm::IRBuilderBase& ir, llvm::Value* x) {
  return ir.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {}, {x});
}

/// exp(x) = 2^(x·log2(e)). The rounding error e of the product is corrected by the factor 1 +
/// e·ln(2). Beyond kMost the power is infinite, where the correction must not be negative; below
/// kLeast it is 0. Selects are avoided: predicates are few, and each writer waits for all readers.
llvm::Value* exponential(llvm::IRBuilderBase& ir, llvm::Value* x) {
  llvm::Type* type = x->getType();
  const auto constant = [&](double value) { return llvm::ConstantFP::get(type, value); };
  constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
  constexpr double kMost = 88.72283935546875, kLeast = -104.0;
  constexpr auto kHigh = static_cast<float>(kLog2E);
  constexpr auto kLow = static_cast<float>(kLog2E - static_cast<double>(kHigh));
  const auto fma = [&](llvm::Value* a, llvm::Value* b, llvm::Value* c) {
    return ir.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a, b, c});
  };
  x = ir.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, x, constant(kMost));
  x = ir.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x, constant(kLeast));
  llvm::Value* product = ir.CreateFMul(x, constant(kHigh));
  llvm::Value* lost = fma(x, constant(kHigh), ir.CreateFNeg(product));
  lost = fma(x, constant(kLow), lost);
  llvm::Value* power = power_of_two(ir, product);
  return fma(power, ir.CreateFMul(lost, constant(kLn2)), power);
}

/// exp(x) for a result that is rounded to 16 bits: the rounding error of the product is at most
/// 2^-17 of the result where that is neither 0 nor infinite, of its 8 or 11 bits.
llvm::Value* half_exponential(llvm::IRBuilderBase& ir, llvm::Value* x) {
  constexpr double kLog2E = 1.4426950408889634;
  return power_of_two(ir, ir.CreateFMul(x, llvm::ConstantFP::get(x->getType(), kLog2E)));
}

/// copysign of a non-negative number, by one bit operation. LLVM's own uses a select.
llvm::Value* with_sign(llvm::IRBuilderBase& ir, llvm::Value* size, llvm::Value* of) {
  constexpr std::uint32_t kSign = 0x80000000;
  llvm::Type* word = ir.getInt32Ty();
  llvm::Value* sign = ir.CreateAnd(ir.CreateBitCast(of, word), ir.getInt32(kSign));
  return ir.CreateBitCast(ir.CreateOr(sign, ir.CreateBitCast(size, word)), size->getType());
}

/// erf within 1.1 ulp: an odd polynomial near 0, else 1 - exp(p(|x|)), where p fits log(1 - erf).
llvm::Value* error_function(llvm::IRBuilderBase& ir, llvm::Value* x) {
  llvm::Type* type = x->getType();
  const auto constant = [&](double value) { return llvm::ConstantFP::get(type, value); };
  const auto fma = [&](llvm::Value* a, llvm::Value* b, llvm::Value* c) {
    return ir.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a, b, c});
  };
  constexpr double kNear[] = {4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1,
                              1.28379166e-1};
  constexpr double kFar[] = {-1.06777877e-1, -6.34846687e-1, -1.28717512e-1};
  constexpr double kLog2E = 1.4426950408889634;
  llvm::Value* size = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Value* square = ir.CreateFMul(x, x);
  llvm::Value* near = constant(-5.96761703e-4);
  for (const double c : kNear) near = fma(near, square, constant(c));
  near = fma(near, x, x);

  llvm::Value* far = fma(constant(-1.72853470e-5), size, constant(3.83197126e-4));
  far = fma(far, square, fma(constant(-3.88396438e-3), size, constant(2.42546219e-2)));
  for (const double c : kFar) far = fma(far, size, constant(c));
  far = ir.CreateFMul(fma(far, size, ir.CreateFNeg(size)), constant(kLog2E));
  far = power_of_two(ir, far);
  far = with_sign(ir, ir.CreateFSub(constant(1.0), far), x);
  return ir.CreateSelect(ir.CreateFCmpULT(size, constant(0.927734375)), near, far);
}

/// 1 - erf(|scale · x|), as a power of two. The polynomial is log2(1 - erf(x)) / x; beyond 4.3 it
/// only decreases, so that the power underflows to 0.
llvm::Value* beyond_erf(llvm::IRBuilderBase& ir, llvm::Value* x, double scale) {
  constexpr double kLog[] = {-4.53586e-5,   4.4550767e-4,   -1.48944173e-3, -7.74629472e-4,
                             2.82536801e-2, -1.48481622e-1, -9.18416381e-1, -1.62790859};
  llvm::Type* type = x->getType();
  llvm::Value* size = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Value* log = nullptr;
  auto power = static_cast<int>(std::size(kLog));
  for (const double c : kLog) {
    llvm::Value* scaled = llvm::ConstantFP::get(type, c * std::pow(scale, power--));
    log = log == nullptr ? scaled
                         : ir.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {log, size, scaled});
  }
  return power_of_two(ir, ir.CreateFMul(log, size));
}

llvm::Value* reciprocal(llvm::IRBuilderBase& ir, llvm::Value* x) {
  return ir.CreateIntrinsic(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {}, {x});
}

/// Within 2 ulp over the whole range of f32: a fifth of the instructions of an IEEE division.
llvm::Value* full_range_quotient(llvm::IRBuilderBase& ir, llvm::Value* x, llvm::Value* y) {
  llvm::Type* type = ir.getFloatTy();
  llvm::Module* module = ir.GetInsertBlock()->getModule();
  const std::string name = fmt::format("{}div.full", kSpecial);
  llvm::CallInst* call = ir.CreateCall(
      module->getOrInsertFunction(name, llvm::FunctionType::get(type, {type, type}, false)),
      {x, y});
  call->setDoesNotAccessMemory();
  return call;
}

/// Within 1.1 ulp. IEEE square root and division take 30 instructions, with calls for rare cases.
llvm::Value* reciprocal_root(llvm::IRBuilderBase& ir, llvm::Value* x) {
  return ir.CreateIntrinsic(llvm::Intrinsic::nvvm_rsqrt_approx_f, {}, {x});
}

llvm::Value* logistic(llvm::IRBuilderBase& ir, llvm::Value* x) {
  llvm::Value* one = llvm::ConstantFP::get(x->getType(), 1.0);
  return reciprocal(ir, ir.CreateFAdd(exponential(ir, ir.CreateFNeg(x)), one));
}

/// tanh: an odd polynomial near 0, else 1 - 2 / (exp(2|x|) + 1).
llvm::Value* hyperbolic_tangent(llvm::IRBuilderBase& ir, llvm::Value* x) {
  llvm::Type* type = x->getType();
  const auto constant = [&](double value) { return llvm::ConstantFP::get(type, value); };
  const auto fma = [&](llvm::Value* a, llvm::Value* b, llvm::Value* c) {
    return ir.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a, b, c});
  };
  constexpr double kNear[] = {-5.23025580e-2, 1.33152470e-1, -3.33327681e-1};
  constexpr double kTwiceLog2E = 2.8853900817779268, kNearest = 0.6;
  llvm::Value* size = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Value* square = ir.CreateFMul(x, x);
  llvm::Value* near = constant(1.57394409e-2);
  for (const double c : kNear) near = fma(near, square, constant(c));
  near = fma(ir.CreateFMul(near, square), size, size);
  llvm::Value* power = power_of_two(ir, ir.CreateFMul(size, constant(kTwiceLog2E)));
  llvm::Value* part = reciprocal(ir, ir.CreateFAdd(power, constant(1.0)));
  llvm::Value* far = fma(part, constant(-2.0), constant(1.0));
  return with_sign(ir, ir.CreateSelect(ir.CreateFCmpULT(size, constant(kNearest)), near, far), x);
}

/// GPU implementation of a function of f32; null: the generic one.
using Own = llvm::Value* (*)(llvm::IRBuilderBase&, llvm::Value*);
Own own_function(tile::Function function, bool fast, bool is_half) {
  switch (function) {
    case tile::Function::Exp: return is_half ? half_exponential : exponential;
    case tile::Function::Exp2: return power_of_two;
    case tile::Function::Erf: return error_function;
    case tile::Function::Rsqrt: return reciprocal_root;
    case tile::Function::Sigmoid: return fast ? logistic : nullptr;
    case tile::Function::Tanh: return fast ? hyperbolic_tangent : nullptr;
    default: return nullptr;
  }
}

}  // namespace

Pieces emit_conversion(llvm::IRBuilderBase& ir, const Pieces& x, DType from, DType to) {
  const bool half = to == DType::F16;
  if (from != DType::F32 || !(half || to == DType::BF16)) return emit_cast(ir, x, from, to);
  Pieces narrowed;
  for (std::size_t i = 0; i < x.size(); i += 2) {
    llvm::Value* second = i + 1 < x.size() ? x[i + 1] : x[i];
    llvm::CallInst* pair = ir.CreateIntrinsic(
        half ? llvm::Intrinsic::nvvm_ff2f16x2_rn : llvm::Intrinsic::nvvm_ff2bf16x2_rn, {},
        {second, x[i]});
    // LLVM does not know that these are pure, and would keep their order.
    pair->addFnAttr(llvm::Attribute::WillReturn);
    pair->addFnAttr(llvm::Attribute::NoUnwind);
    for (std::size_t j = i; j < std::min(i + 2, x.size()); ++j)
      narrowed.push_back(ir.CreateExtractElement(pair, j - i));
  }
  return narrowed;
}

Pieces one_plus_erf(llvm::IRBuilderBase& ir, const Pieces& x, double scale) {
  Pieces results;
  for (llvm::Value* value : x) {
    llvm::Value* one = llvm::ConstantFP::get(value->getType(), 1.0);
    llvm::Value* erf = with_sign(ir, ir.CreateFSub(one, beyond_erf(ir, value, scale)), value);
    results.push_back(ir.CreateFAdd(erf, one));
  }
  return results;
}

Pieces times_one_plus_erf(llvm::IRBuilderBase& ir, const Pieces& factor, const Pieces& x,
                          double scale) {
  Pieces results;
  for (std::size_t i = 0; i < x.size(); ++i) {
    llvm::Type* type = x[i]->getType();
    llvm::Value* size = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, factor[i]);
    llvm::Value* erf = ir.CreateFSub(llvm::ConstantFP::get(type, 1.0), beyond_erf(ir, x[i], scale));
    results.push_back(ir.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {size, erf, factor[i]}));
  }
  return results;
}

Pieces emit_function(llvm::IRBuilderBase& ir, tile::Function function, DType dtype,
                     std::span<const Pieces> operands, Precision precision, bool is_half) {
  // 22 bits are exact enough for the 11 of f16.
  const bool half = dtype == DType::F16 || dtype == DType::BF16;
  is_half = is_half || half;
  if (function == tile::Function::Div && dtype == DType::F32 && precision == Precision::Fast) {
    Pieces quotients;
    for (std::size_t i = 0; i < operands[0].size(); ++i)
      quotients.push_back(full_range_quotient(ir, operands[0][i], operands[1][i]));
    return quotients;
  }
  const Own own = dtype == DType::F32 || half
                      ? own_function(function, is_half || precision == Precision::Fast, is_half)
                      : nullptr;
  if (own == nullptr) return emit_map(ir, function, dtype, operands, precision);
  Pieces results;
  for (llvm::Value* x : emit_conversion(ir, operands[0], dtype, DType::F32))
    results.push_back(own(ir, x));
  return emit_conversion(ir, results, DType::F32, dtype);
}

}  // namespace tessera::codegen::ptx
