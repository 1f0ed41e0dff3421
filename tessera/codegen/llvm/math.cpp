#include "tessera/codegen/llvm/math.h"

#include "tessera/codegen/llvm/functions.h"
#include "tessera/support/check.h"

namespace tessera::codegen {
namespace {

using tile::Function;
using Predicate = llvm::CmpInst::Predicate;

/// Functions of f32 or f64.
Lanes map_floats(Function function, std::span<const Lanes> in, Precision precision, Sign sign) {
  const Lanes &a = in.front(), &b = in.size() > 1 ? in[1] : a;
  switch (function) {
    case Function::Neg: return -a;
    case Function::Abs: return abs(a);
    case Function::Exp: return exp(a, precision, sign);
    case Function::Exp2: return exp2(a, precision, sign);
    case Function::Log: return log(a);
    case Function::Log2: return log2(a);
    case Function::Sin: return sin(a);
    case Function::Cos: return cos(a);
    case Function::Tanh: return tanh(a, precision);
    case Function::Erf: return erf(a, precision);
    case Function::Sqrt: return intrinsic(llvm::Intrinsic::sqrt, a);
    case Function::Rsqrt: return a.constant(1.0) / intrinsic(llvm::Intrinsic::sqrt, a);
    case Function::Sigmoid: return sigmoid(a, precision);
    case Function::Floor: return intrinsic(llvm::Intrinsic::floor, a);
    case Function::Ceil: return intrinsic(llvm::Intrinsic::ceil, a);
    case Function::Round: return intrinsic(llvm::Intrinsic::roundeven, a);
    case Function::Add: return a + b;
    case Function::Sub: return a - b;
    case Function::Mul: return a * b;
    case Function::Div: return a / b;
    case Function::Rem: return rem(a, b);
    case Function::Min: return intrinsic(llvm::Intrinsic::minnum, a, b);
    case Function::Max: return intrinsic(llvm::Intrinsic::maxnum, a, b);
    case Function::Minimum: return intrinsic(llvm::Intrinsic::minimum, a, b);
    case Function::Maximum: return intrinsic(llvm::Intrinsic::maximum, a, b);
    case Function::Pow: return pow(a, b);
    case Function::Equal: return compare(Predicate::FCMP_OEQ, a, b);
    case Function::NotEqual: return compare(Predicate::FCMP_UNE, a, b);
    case Function::Less: return compare(Predicate::FCMP_OLT, a, b);
    case Function::LessEqual: return compare(Predicate::FCMP_OLE, a, b);
    case Function::Greater: return compare(Predicate::FCMP_OGT, a, b);
    case Function::GreaterEqual: return compare(Predicate::FCMP_OGE, a, b);
    case Function::Fma: return fma(a, b, in[2]);
    case Function::Select: return select(a, b, in[2]);
    case Function::Exchange: return b;
    case Function::None:
    case Function::Not:
    case Function::And:
    case Function::Or:
    case Function::Xor:
    case Function::Shl:
    case Function::Shr:
    case Function::MulHi: break;
  }
  TESSERA_CHECK(false, "{} of floats", tile::to_string(function));
  return a;
}

/// Functions of f16 or bf16: bit operations stay in the type, the rest is computed in f32 and
/// rounded.
Lanes map_halves(Function function, DType dtype, std::vector<Lanes> in, Precision precision,
                 Sign sign) {
  const Lanes& last = in.back();
  if (function == Function::Select) {
    const Lanes chosen = select(in[0], in[1].as_integer(), in[2].as_integer());
    return chosen.cast(llvm::Instruction::BitCast, last.element());
  }
  if (function == Function::Exchange) return last;
  if (function == Function::Neg || function == Function::Abs) {
    const Lanes bits = last.as_integer();
    const Lanes sign = bits.constant(std::uint64_t{0x8000});
    const Lanes changed = function == Function::Neg ? bits ^ sign : bits & ~sign;
    return changed.cast(llvm::Instruction::BitCast, last.element());
  }
  // LLVM narrows operations between an extension and a truncation. That is welcome where CPUs
  // compute in f16; elsewhere it would scalarize vectors and call functions.
  const bool native = dtype == DType::F16 && target_has(last, {"fullfp16", "avx512fp16"});
  for (Lanes& x : in) {
    x = cast(x, dtype, DType::F32);
    if (!native) x = intrinsic(llvm::Intrinsic::arithmetic_fence, x);
  }
  // 22 bits are exact enough for the 11 of f16, but bf16 has subnormals that the fast functions
  // flush.
  const Lanes value =
      map_floats(function, in, dtype == DType::F16 ? Precision::Fast : precision, sign);
  return tile::is_compare(function) ? value : cast(value, DType::F32, dtype);
}

}  // namespace

Pieces emit_map(llvm::IRBuilderBase& ir, Function function, DType dtype,
                std::span<const Pieces> operands, Precision precision, Sign sign) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(ir);
  ir.clearFastMathFlags();
  std::vector<Lanes> in;
  for (const Pieces& operand : operands) in.emplace_back(ir, operand);
  if (is_half(dtype)) return map_halves(function, dtype, std::move(in), precision, sign).pieces();
  if (is_float(dtype)) return map_floats(function, in, precision, sign).pieces();
  return map_integers(function, is_signed(dtype), in).pieces();
}

Pieces emit_cast(llvm::IRBuilderBase& ir, const Pieces& x, DType from, DType to) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(ir);
  ir.clearFastMathFlags();
  return cast(Lanes(ir, x), from, to).pieces();
}

}  // namespace tessera::codegen
