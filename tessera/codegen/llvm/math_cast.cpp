#include <cmath>

#include "tessera/codegen/llvm/functions.h"
#include "tessera/support/check.h"

// Conversions. Those of bf16 are done on integers, and no conversion is left to LLVM that it would
// make a call of or round twice.

namespace tessera::codegen {
namespace {

using Ops = llvm::Instruction::CastOps;
using Predicate = llvm::CmpInst::Predicate;

bool is_signed(DType dtype) {
  return dtype == DType::I8 || dtype == DType::I16 || dtype == DType::I32 || dtype == DType::I64;
}

llvm::Type* element_of(DType dtype, llvm::IRBuilderBase& ir) {
  switch (dtype) {
    case DType::F16: return ir.getHalfTy();
    case DType::BF16: return ir.getBFloatTy();
    case DType::F32: return ir.getFloatTy();
    case DType::F64: return ir.getDoubleTy();
    case DType::Bool: return ir.getInt1Ty();
    case DType::I8:
    case DType::I16:
    case DType::I32:
    case DType::I64:
    case DType::U8:
    case DType::U16:
    case DType::U32:
    case DType::U64: return ir.getIntNTy(static_cast<unsigned>(8 * byte_width(dtype)));
    case DType::String: break;
  }
  TESSERA_CHECK(false, "a tile of strings");
  return nullptr;
}

Lanes widened_from_bf16(const Lanes& x) {
  const Lanes bits = x.as_integer().cast(Ops::ZExt, x.ir().getInt32Ty());
  return shift_left(bits, 16).as_float();
}

/// f32 to bf16, to nearest even; NaN stays NaN, and quiet.
Lanes narrowed_to_bf16(const Lanes& x) {
  const Lanes bits = x.as_integer();
  const Lanes odd = shift_right(bits, 16) & bits.constant(std::uint64_t{1});
  const Lanes rounded = bits + (odd + bits.constant(std::uint64_t{0x7fff}));
  const Lanes quiet = bits | bits.constant(std::uint64_t{0x400000});
  const Lanes result = select(compare(Predicate::FCMP_UNO, x, x), quiet, rounded);
  return shift_right(result, 16)
      .cast(Ops::Trunc, x.ir().getInt16Ty())
      .cast(Ops::BitCast, x.ir().getBFloatTy());
}

/// f64 to f32, rounded to odd: a further rounding to fewer bits then rounds as if it were the only
/// one (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
Lanes narrowed_to_odd(const Lanes& x) {
  const Lanes nearest = x.cast(Ops::FPTrunc, x.ir().getFloatTy());
  const Lanes back = nearest.cast(Ops::FPExt, x.element());
  const Lanes bits = nearest.as_integer();
  const Lanes one = bits.constant(std::uint64_t{1}), zero = bits.constant(std::uint64_t{0});
  const Lanes beyond = compare(Predicate::FCMP_OGT, abs(back), abs(x));
  const Lanes inexact = compare(Predicate::FCMP_ONE, back, x);
  const Lanes truncated = bits - select(beyond, one, zero);
  return (truncated | select(inexact, one, zero)).as_float();
}

/// A 64-bit integer as one of at most 53 significant bits that rounds the same to f32 and below:
/// what is dropped leaves a trace in the last bit that is kept.
Lanes with_53_bits(const Lanes& x, bool with_sign) {
  const Lanes low = x.constant(std::uint64_t{0x7ff});
  const Lanes dropped = x & low;
  const Lanes zero = x.constant(std::uint64_t{0});
  const Lanes trace =
      select(compare(Predicate::ICMP_EQ, dropped, zero), zero, x.constant(std::uint64_t{0x800}));
  const Lanes shortened = (x & ~low) | trace;
  const unsigned limit = 53;
  const Lanes top = with_sign ? shift_right_arithmetic(x, limit) : shift_right(x, limit);
  const Lanes fits = with_sign ? compare(Predicate::ICMP_EQ, top, shift_right_arithmetic(x, 63))
                               : compare(Predicate::ICMP_EQ, top, zero);
  return select(fits, x, shortened);
}

/// f32 or f64 to an integer: towards zero, to the nearest integer there is, NaN to 0.
Lanes truncated_to_integer(const Lanes& x, DType to) {
  const auto id = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  llvm::Type* const type = x.type_of(element_of(to, x.ir()));
  return each_piece(
      [&](auto* piece) {
        return x.ir().CreateIntrinsic(id, {type, x.type()}, {piece});
      },
      x);
}

Lanes integer_to_float(const Lanes& x, DType from, DType to) {
  llvm::IRBuilderBase& ir = x.ir();
  const auto convert = is_signed(from) ? Ops::SIToFP : Ops::UIToFP;
  const int bytes = from == DType::Bool ? 1 : byte_width(from);
  if (to == DType::F64 || (to == DType::F32 && bytes <= 4))
    return x.cast(convert, element_of(to, ir));
  if (bytes <= 2) return cast(x.cast(convert, ir.getFloatTy()), DType::F32, to);
  const Lanes exact = bytes == 8 ? with_53_bits(x, is_signed(from)) : x;
  return cast(exact.cast(convert, ir.getDoubleTy()), DType::F64, to);
}

Lanes float_to_float(const Lanes& x, DType from, DType to) {
  if (from == DType::BF16) return cast(widened_from_bf16(x), DType::F32, to);
  llvm::Type* const element = element_of(to, x.ir());
  if (from == DType::F16) return cast(x.cast(Ops::FPExt, x.ir().getFloatTy()), DType::F32, to);
  if (from == DType::F32 && to == DType::BF16) return narrowed_to_bf16(x);
  if (from == DType::F32) return x.cast(to == DType::F64 ? Ops::FPExt : Ops::FPTrunc, element);
  if (to == DType::F32) return x.cast(Ops::FPTrunc, element);
  return cast(narrowed_to_odd(x), DType::F32, to);
}

}  // namespace

Lanes cast(const Lanes& x, DType from, DType to) {
  if (from == to) return x;
  if (to == DType::Bool) {
    if (from == DType::BF16) return cast(widened_from_bf16(x), DType::F32, to);
    if (is_float(from)) return compare(Predicate::FCMP_UNE, x, 0.0);
    return compare(Predicate::ICMP_NE, x, x.constant(std::uint64_t{0}));
  }
  if (is_float(from) && is_float(to)) return float_to_float(x, from, to);
  if (is_float(to)) return integer_to_float(x, from, to);
  if (from == DType::F16 || from == DType::BF16)
    return cast(cast(x, from, DType::F32), DType::F32, to);
  if (is_float(from)) return truncated_to_integer(x, to);
  llvm::Type* const element = element_of(to, x.ir());
  if (from != DType::Bool && byte_width(to) <= byte_width(from)) {
    return x.bits() == element->getScalarSizeInBits() ? x : x.cast(Ops::Trunc, element);
  }
  return x.cast(is_signed(from) ? Ops::SExt : Ops::ZExt, element);
}

}  // namespace tessera::codegen
