#include <array>
#include <cmath>

#include "tessera/triton/lowering.h"

namespace tessera::triton {
namespace {

using tile::ValueId;
using F = tile::Function;

/// Format of an 8-bit float: a sign, exponent bits, mantissa bits.
struct Float8Format {
  int mantissa_bits;
  int bias;
  int max_finite;    // bits of the largest finite number, without the sign
  int infinity;      // bits of infinity, or -1: there is none
  int nan;           // bits of the NaN that is made
  bool signed_zero;  // 0x80 is -0; otherwise it is the only NaN
};

Float8Format format_of(Element element) {
  switch (element) {
    case Element::F8E4M3FN: return {3, 7, 0x7e, -1, 0x7f, true};
    case Element::F8E4M3FNUZ: return {3, 8, 0x7f, -1, 0x80, false};
    case Element::F8E4M3B11FNUZ: return {3, 15, 0x7f, -1, 0x80, true};
    case Element::F8E5M2: return {2, 15, 0x7b, 0x7c, 0x7f, true};
    default: return {2, 16, 0x7f, -1, 0x80, false};  // F8E5M2FNUZ
  }
}

}  // namespace

ValueId Lowering::decoded(Element element, ValueId bits) {
  const Float8Format format = format_of(element);
  const ValueId wide = as(bits, DType::U32);
  const auto constant = [&](std::int64_t value) { return integer(wide, value); };
  const ValueId magnitude = map(F::And, {wide, constant(0x7f)});
  // A float32 with the exponent and mantissa in place is the number but for its bias, subnormal
  // numbers too: one product with a power of two, which is exact, corrects that.
  const ValueId placed = map(F::Shl, {magnitude, constant(23 - format.mantissa_bits)});
  const ValueId raw = builder_.bitcast(placed, DType::F32);
  ValueId number_ = map(F::Mul, {raw, number(raw, std::ldexp(1.0, 127 - format.bias))});
  if (format.infinity >= 0) {
    const ValueId special =
        builder_.bitcast(map(F::Or, {placed, constant(0x7f800000)}), DType::F32);
    number_ =
        select(map(F::GreaterEqual, {magnitude, constant(format.infinity)}), special, number_);
  } else if (format.nan == 0x7f) {
    number_ = select(map(F::Equal, {magnitude, constant(0x7f)}), number(raw, NAN), number_);
  }
  const ValueId sign = map(F::Shl, {map(F::And, {wide, constant(0x80)}), constant(24)});
  ValueId result =
      builder_.bitcast(map(F::Or, {builder_.bitcast(number_, DType::U32), sign}), DType::F32);
  if (!format.signed_zero) {
    result = select(map(F::Equal, {wide, constant(0x80)}), number(raw, NAN), result);
  }
  return result;
}

ValueId Lowering::encoded(Element element, ValueId numbers, bool toward_zero) {
  const Float8Format format = format_of(element);
  const ValueId pattern = builder_.bitcast(numbers, DType::U32);
  const auto constant = [&](std::int64_t value) { return integer(pattern, value); };
  const ValueId magnitude = map(F::And, {pattern, constant(0x7fffffff)});
  const int dropped = 23 - format.mantissa_bits;
  // Normal numbers: rebias, then round the bits that are dropped, which may carry into the
  // exponent.
  const ValueId rebiased =
      map(F::Sub, {magnitude, constant((std::int64_t{127} - format.bias) << 23)});
  const ValueId odd = map(F::And, {map(F::Shr, {rebiased, constant(dropped)}), constant(1)});
  const ValueId rounding =
      toward_zero ? constant(0)
                  : map(F::Add, {odd, constant((std::int64_t{1} << (dropped - 1)) - 1)});
  const ValueId normal = map(F::Shr, {map(F::Add, {rebiased, rounding}), constant(dropped)});
  // Subnormal ones: a multiple of the least, which a product with a power of two makes an integer.
  const ValueId absolute = builder_.bitcast(magnitude, DType::F32);
  const ValueId scaled =
      map(F::Mul,
          {absolute, number(absolute, std::ldexp(1.0, format.bias - 1 + format.mantissa_bits))});
  const ValueId subnormal = as(map(toward_zero ? F::Floor : F::Round, {scaled}), DType::U32);
  const ValueId is_normal =
      map(F::GreaterEqual, {magnitude, constant((std::int64_t{128} - format.bias) << 23)});
  ValueId bits = select(is_normal, normal, subnormal);
  const ValueId is_nan = map(F::NotEqual, {numbers, numbers});
  const ValueId is_infinite = map(F::Equal, {magnitude, constant(0x7f800000)});
  // Out of range saturates, but for a format with infinities under rounding to nearest.
  const bool overflows = format.infinity >= 0 && !toward_zero;
  bits = select(map(F::Greater, {bits, constant(format.max_finite)}),
                constant(overflows ? format.infinity : format.max_finite), bits);
  if (format.infinity >= 0) bits = select(is_infinite, constant(format.infinity), bits);
  const ValueId sign = map(F::And, {map(F::Shr, {pattern, constant(24)}), constant(0x80)});
  ValueId result = map(F::Or, {bits, sign});
  if (!format.signed_zero) {
    result = select(map(F::Equal, {bits, constant(0)}), constant(0), result);
  }
  result = select(is_nan, constant(format.nan), result);
  return as(result, DType::U8);
}

}  // namespace tessera::triton
