#include "tessera/codegen/llvm/functions.h"
#include "tessera/support/check.h"

namespace tessera::codegen {
namespace {

using tile::Function;
using BinaryOps = llvm::Instruction::BinaryOps;
using Predicate = llvm::CmpInst::Predicate;

Lanes binary(BinaryOps op, const Lanes& a, const Lanes& b) {
  return each_piece([&](auto* x, auto* y) { return a.ir().CreateBinOp(op, x, y); }, a, b);
}

/// Quotient or remainder; neither a divisor of 0 nor the one quotient that overflows traps.
Lanes divided(BinaryOps op, bool is_signed, const Lanes& a, const Lanes& b) {
  const Lanes zero = a.constant(std::uint64_t{0}), one = a.constant(std::uint64_t{1});
  const Lanes by_zero = compare(Predicate::ICMP_EQ, b, zero);
  Lanes harmful = by_zero;
  if (is_signed) {
    const Lanes least = a.constant(llvm::APInt::getSignedMinValue(a.bits()));
    harmful =
        harmful | (compare(Predicate::ICMP_EQ, b, ~zero) & compare(Predicate::ICMP_EQ, a, least));
  }
  return select(by_zero, zero, binary(op, a, select(harmful, one, b)));
}

Lanes shifted(BinaryOps op, const Lanes& a, const Lanes& b) {
  const Lanes last = a.constant(std::uint64_t{a.bits() - 1});
  const Lanes value = binary(op, a, intrinsic(llvm::Intrinsic::umin, b, last));
  if (op == BinaryOps::AShr) return value;
  return select(compare(Predicate::ICMP_UGT, b, last), a.constant(std::uint64_t{0}), value);
}

Lanes upper_product(bool is_signed, const Lanes& a, const Lanes& b) {
  const auto extend = is_signed ? llvm::Instruction::SExt : llvm::Instruction::ZExt;
  llvm::Type* const wide = a.ir().getIntNTy(2 * a.bits());
  const Lanes product = a.cast(extend, wide) * b.cast(extend, wide);
  return shift_right(product, a.bits()).cast(llvm::Instruction::Trunc, a.element());
}

}  // namespace

Lanes map_integers(Function function, bool is_signed, std::span<const Lanes> in) {
  const Lanes &a = in.front(), &b = in.size() > 1 ? in[1] : a;
  const auto by_sign = [&](auto with, auto without) { return is_signed ? with : without; };
  switch (function) {
    case Function::Neg: return -a;
    case Function::Abs: {
      if (!is_signed) return a;
      return select(compare(Predicate::ICMP_SLT, a, a.constant(std::uint64_t{0})), -a, a);
    }
    case Function::Floor:
    case Function::Ceil:
    case Function::Round: return a;
    case Function::Not: return ~a;
    case Function::Add: return a + b;
    case Function::Sub: return a - b;
    case Function::Mul: return a * b;
    case Function::Div: return divided(by_sign(BinaryOps::SDiv, BinaryOps::UDiv), is_signed, a, b);
    case Function::Rem: return divided(by_sign(BinaryOps::SRem, BinaryOps::URem), is_signed, a, b);
    case Function::Min:
    case Function::Minimum:
      return intrinsic(by_sign(llvm::Intrinsic::smin, llvm::Intrinsic::umin), a, b);
    case Function::Max:
    case Function::Maximum:
      return intrinsic(by_sign(llvm::Intrinsic::smax, llvm::Intrinsic::umax), a, b);
    case Function::And: return a & b;
    case Function::Or: return a | b;
    case Function::Xor: return a ^ b;
    case Function::Shl: return shifted(BinaryOps::Shl, a, b);
    case Function::Shr: return shifted(by_sign(BinaryOps::AShr, BinaryOps::LShr), a, b);
    case Function::MulHi: return upper_product(is_signed, a, b);
    case Function::Equal: return compare(Predicate::ICMP_EQ, a, b);
    case Function::NotEqual: return compare(Predicate::ICMP_NE, a, b);
    case Function::Less: return compare(by_sign(Predicate::ICMP_SLT, Predicate::ICMP_ULT), a, b);
    case Function::LessEqual:
      return compare(by_sign(Predicate::ICMP_SLE, Predicate::ICMP_ULE), a, b);
    case Function::Greater: return compare(by_sign(Predicate::ICMP_SGT, Predicate::ICMP_UGT), a, b);
    case Function::GreaterEqual:
      return compare(by_sign(Predicate::ICMP_SGE, Predicate::ICMP_UGE), a, b);
    case Function::Fma: return a * b + in[2];
    case Function::Select: return select(a, b, in[2]);
    case Function::Exchange: return b;
    case Function::None:
    case Function::Exp:
    case Function::Exp2:
    case Function::Log:
    case Function::Log2:
    case Function::Sin:
    case Function::Cos:
    case Function::Tanh:
    case Function::Erf:
    case Function::Sqrt:
    case Function::Rsqrt:
    case Function::Sigmoid:
    case Function::Pow: break;
  }
  TESSERA_CHECK(false, "{} of integers", tile::to_string(function));
  return a;
}

}  // namespace tessera::codegen
