#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <cmath>

#include "tessera/codegen/llvm/flow.h"
#include "tessera/codegen/llvm/functions.h"

// Conversions. Those of bf16 are done on integers, and conversions that LLVM would turn into calls
// or round twice are emitted explicitly.

namespace tessera::codegen {
namespace {

using CastOps = llvm::Instruction::CastOps;
using Predicate = llvm::CmpInst::Predicate;

Lanes widened_from_bf16(const Lanes& x) {
  const Lanes bits = x.as_integer().cast(CastOps::ZExt, x.ir().getInt32Ty());
  return shift_left(bits, 16).as_float();
}

/// f32 to bf16, to nearest even; NaN stays NaN, and quiet.
Lanes narrowed_to_bf16(const Lanes& x) {
  if (target_has(x, {"bf16"})) return x.cast(CastOps::FPTrunc, x.ir().getBFloatTy());
  const Lanes bits = x.as_integer();
  const Lanes odd = shift_right(bits, 16) & bits.constant(std::uint64_t{1});
  const Lanes rounded = bits + (odd + bits.constant(std::uint64_t{0x7fff}));
  const Lanes quiet = bits | bits.constant(std::uint64_t{0x400000});
  // Not a float comparison: if x came from f16, LLVM would compare there.
  const Lanes magnitude = bits & bits.constant(std::uint64_t{0x7fffffff});
  const Lanes nan =
      compare(Predicate::ICMP_SGT, magnitude, bits.constant(std::uint64_t{0x7f800000}));
  const Lanes result = select(nan, quiet, rounded);
  return shift_right(result, 16)
      .cast(CastOps::Trunc, x.ir().getInt16Ty())
      .cast(CastOps::BitCast, x.ir().getBFloatTy());
}

/// f64 to f32, rounded to odd: a further rounding to fewer bits then rounds as if it were the only
/// one (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
Lanes narrowed_to_odd(const Lanes& x) {
  const Lanes nearest = x.cast(CastOps::FPTrunc, x.ir().getFloatTy());
  const Lanes back = nearest.cast(CastOps::FPExt, x.element());
  const Lanes bits = nearest.as_integer();
  const Lanes one = bits.constant(std::uint64_t{1}), zero = bits.constant(std::uint64_t{0});
  const Lanes beyond = compare(Predicate::FCMP_OGT, abs(back), abs(x));
  const Lanes inexact = compare(Predicate::FCMP_ONE, back, x);
  const Lanes truncated = bits - select(beyond, one, zero);
  return (truncated | select(inexact, one, zero)).as_float();
}

/// An integer of at most `kept` significant bits that rounds the same to fewer than half as many:
/// where it has more, the lowest are dropped and leave a trace in the last that is kept.
Lanes with_significant_bits(const Lanes& x, unsigned kept, bool with_sign) {
  const std::uint64_t last = std::uint64_t{1} << (x.bits() - kept);
  const Lanes low = x.constant(last - 1), zero = x.constant(std::uint64_t{0});
  const Lanes exact = compare(Predicate::ICMP_EQ, x & low, zero);
  const Lanes shortened = (x & ~low) | select(exact, zero, x.constant(last));
  const Lanes top = with_sign ? shift_right_arithmetic(x, kept) : shift_right(x, kept);
  const Lanes sign = with_sign ? shift_right_arithmetic(x, x.bits() - 1) : zero;
  return select(compare(Predicate::ICMP_EQ, top, sign), x, shortened);
}

/// Clamps an integer to a bound beyond which f16 is infinite and up to which f32 is exact.
Lanes within_f16(const Lanes& x, bool with_sign) {
  const std::uint64_t most = 0x20000;
  if (!with_sign) return intrinsic(llvm::Intrinsic::umin, x, x.constant(most));
  const Lanes above = intrinsic(llvm::Intrinsic::smax, x, -x.constant(most));
  return intrinsic(llvm::Intrinsic::smin, above, x.constant(most));
}

/// Saturating conversion like LLVM's intrinsics, which scalarize vectors on x86.
Lanes truncated_by_clamping(const Lanes& x, llvm::Type* element, bool with_sign) {
  const int bits = static_cast<int>(element->getScalarSizeInBits()) - (with_sign ? 1 : 0);
  const int digits = x.is_double() ? 53 : 24;
  const double limit = std::ldexp(1, bits);
  const double most = limit - std::ldexp(1, std::max(bits - digits, 0));  // the last float below
  const Lanes number = select(compare(Predicate::FCMP_ORD, x, x), x, x.constant(0.0));
  const Lanes near = clamp_below(clamp_above(number, with_sign ? -limit : 0), most);
  const Lanes value = near.cast(with_sign ? CastOps::FPToSI : CastOps::FPToUI, element);
  if (bits <= digits) return value;
  const Lanes last = value.constant(llvm::APInt::getLowBitsSet(value.bits(), bits));
  return select(compare(Predicate::FCMP_OGE, x, limit), last, value);
}

/// f32 or f64 to an integer: truncates, saturates, NaN to 0.
Lanes truncated_to_integer(const Lanes& x, DType to) {
  llvm::Type* const element = type_of(to, x.ir().getContext());
  if (target_has(x, {"sse2", "avx"})) return truncated_by_clamping(x, element, is_signed(to));
  const auto id = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return each_piece(
      [&](auto* piece) {
        return x.ir().CreateIntrinsic(id, {x.type_of(element), x.type()}, {piece});
      },
      x);
}

Lanes integer_to_float(const Lanes& x, DType from, DType to) {
  llvm::IRBuilderBase& ir = x.ir();
  const bool with_sign = is_signed(from);
  const auto convert = with_sign ? CastOps::SIToFP : CastOps::UIToFP;
  const int bytes = from == DType::Bool ? 1 : byte_width(from);
  if (to == DType::F64 || (to == DType::F32 && bytes <= 4))
    return x.cast(convert, type_of(to, ir.getContext()));
  // Exact intermediate type, so that the only rounding is the last.
  if (bytes == 8 && to != DType::F16) {
    const Lanes short_enough = with_significant_bits(x, 53, with_sign);
    return cast(short_enough.cast(convert, ir.getDoubleTy()), DType::F64, to);
  }
  Lanes short_enough = x;
  if (bytes > 2)
    short_enough =
        to == DType::F16 ? within_f16(x, with_sign) : with_significant_bits(x, 24, with_sign);
  if (bytes == 8) short_enough = short_enough.cast(CastOps::Trunc, ir.getInt32Ty());
  return cast(short_enough.cast(convert, ir.getFloatTy()), DType::F32, to);
}

/// f16 as f32. LLVM narrows operations between an extension and a truncation, which a CPU without
/// f16 arithmetic pays for: vectors become scalars, and its maximum of f16 loses NaN (LLVM 19).
Lanes widened_from_f16(const Lanes& x) {
  const Lanes wide = x.cast(CastOps::FPExt, x.ir().getFloatTy());
  const bool is_gpu =
      llvm::Triple(x.ir().GetInsertBlock()->getModule()->getTargetTriple()).isNVPTX();
  if (is_gpu || target_has(x, {"fullfp16", "avx512fp16"})) return wide;
  return intrinsic(llvm::Intrinsic::arithmetic_fence, wide);
}

Lanes float_to_float(const Lanes& x, DType from, DType to) {
  if (from == DType::BF16) return cast(widened_from_bf16(x), DType::F32, to);
  llvm::Type* const element = type_of(to, x.ir().getContext());
  if (from == DType::F16) return cast(widened_from_f16(x), DType::F32, to);
  if (from == DType::F32 && to == DType::BF16) return narrowed_to_bf16(x);
  if (from == DType::F32)
    return x.cast(to == DType::F64 ? CastOps::FPExt : CastOps::FPTrunc, element);
  if (to == DType::F32) return x.cast(CastOps::FPTrunc, element);
  return cast(narrowed_to_odd(x), DType::F32, to);
}

}  // namespace

Lanes cast(const Lanes& x, DType from, DType to) {
  if (from == to) return x;
  if (to == DType::Bool) {
    if (byte_width(from) == 2 && is_float(from)) {  // bits without the sign
      const Lanes magnitude = shift_left(x.as_integer(), 1);
      return compare(Predicate::ICMP_NE, magnitude, magnitude.constant(std::uint64_t{0}));
    }
    if (is_float(from)) return compare(Predicate::FCMP_UNE, x, 0.0);
    return compare(Predicate::ICMP_NE, x, x.constant(std::uint64_t{0}));
  }
  if (is_float(from) && is_float(to)) return float_to_float(x, from, to);
  if (is_float(to)) return integer_to_float(x, from, to);
  if (is_float(from) && byte_width(from) == 2)
    return cast(intrinsic(llvm::Intrinsic::arithmetic_fence, cast(x, from, DType::F32)), DType::F32,
                to);
  if (is_float(from)) return truncated_to_integer(x, to);
  llvm::Type* const element = type_of(to, x.ir().getContext());
  if (from != DType::Bool && byte_width(to) <= byte_width(from)) {
    return x.bits() == element->getScalarSizeInBits() ? x : x.cast(CastOps::Trunc, element);
  }
  return x.cast(is_signed(from) ? CastOps::SExt : CastOps::ZExt, element);
}

}  // namespace tessera::codegen
