#include <cmath>
#include <limits>

#include "tessera/codegen/llvm/functions.h"

// With x = 2^e m and m between √½ and √2, log(x) is e ln 2 + log(1 + f), f = m - 1. The
// coefficients are minimax in relative error (Remez), rounded to the format.

namespace tessera::codegen {
namespace {

using Predicate = llvm::CmpInst::Predicate;

// (log(1 + f) - f + f²/2) / f³
constexpr double kLog32[] = {0x1.555548p-2,  -0x1.000006p-2, 0x1.99a4b4p-3,
                             -0x1.555c4ep-3, 0x1.233774p-3,  -0x1.fc21dep-4,
                             0x1.e6efd0p-4,  -0x1.de3d5cp-4, 0x1.145a72p-4};
constexpr double kLog64[] = {
    0x1.555555555556bp-2, -0x1.ffffffffffe7bp-3, 0x1.9999999994dcbp-3, -0x1.555555556b1e6p-3,
    0x1.249249275d202p-3, -0x1.fffffff3a59ddp-4, 0x1.c71c702e32b5fp-4, -0x1.99999aa0d23dbp-4,
    0x1.745d58cf1bd47p-4, -0x1.555576b589047p-4, 0x1.3b0d78dcd571cp-4, -0x1.24894c277e345p-4,
    0x1.1169fff3a0196p-4, -0x1.00cfa448d81b2p-4, 0x1.dc97c0406e969p-5, -0x1.b45e8704b8b40p-5,
    0x1.bbaccf490a56ep-5, -0x1.0106a9e810bf3p-4, 0x1.d2b0a0dfd861ep-5, -0x1.8dbe74ad83885p-6};
constexpr Coefficients kLog = {kLog32, kLog64};

// (atanh(s) / s - 1 - s²/3) / s⁴ in s²
constexpr double kAtanh64[] = {0x1.9999999999b34p-3, 0x1.2492492457620p-3, 0x1.c71c722e154f7p-4,
                               0x1.745ce9a36ea44p-4, 0x1.3b1ef8350bfe3p-4, 0x1.0f7ec0a0a5d5dp-4,
                               0x1.0e4de2d8c482dp-4};

/// Constant in two parts.
struct Constant {
  double high, low;
};
constexpr Constant kLn2For32 = {0x1.62e430p-1, -0x1.05c610p-29};
constexpr Constant kLn2For64 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Constant kLog2EFor32 = {0x1.715476p+0, 0x1.4ae0c0p-26};
constexpr Constant kLog2EFor64 = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
constexpr Constant kThird = {0x1.5555555555555p-2, 0x1.5555555555555p-56};

struct Parts {
  Lanes exponent, mantissa;
};

/// Decomposition of a positive finite number, subnormal ones included.
Parts parts_of(const Lanes& x) {
  const bool wide = x.is_double();
  const unsigned mantissa = wide ? 52 : 23;
  const double least =
      wide ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  const double raise = mantissa + 1;
  const Lanes tiny = compare(Predicate::FCMP_OLT, x, least);
  const Lanes bits = select(tiny, x * std::ldexp(1.0, static_cast<int>(raise)), x).as_integer();
  const Lanes root_half = x.constant(0x1.6a09e667f3bcdp-1).as_integer();
  const Lanes exponent = shift_right_arithmetic(bits - root_half, mantissa);
  const Lanes raised = select(tiny, x.constant(raise), x.constant(0.0));
  return {exponent.cast(llvm::Instruction::SIToFP, x.element()) - raised,
          (bits - shift_left(exponent, mantissa)).as_float()};
}

/// log(1 + f) - f
Lanes log_beyond_linear(const Lanes& f) {
  const Lanes square = f * f;
  const Lanes cubic = polynomial(f, kLog) * f;
  return square * (cubic - 0.5);
}

/// Value of a logarithm where x is positive and finite, with the special cases elsewhere.
Lanes with_special_values(const Lanes& x, const Lanes& value) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Lanes positive = compare(Predicate::FCMP_OGT, x, 0.0);
  const Lanes finite = compare(Predicate::FCMP_OLT, x, infinity);
  const Lanes none = x.constant(std::numeric_limits<double>::quiet_NaN());
  const Lanes zero = compare(Predicate::FCMP_OEQ, x, 0.0);
  const Lanes not_positive = select(zero, x.constant(-infinity), none);
  return select(positive, select(finite, value, x), not_positive);
}

/// Double-double number: high is the rounded sum.
struct Sum {
  Lanes high, low;
};
/// a + b exactly, where |a| >= |b| or a is 0.
Sum sum_of(const Lanes& a, const Lanes& b) {
  const Lanes high = a + b;
  return {high, b - (high - a)};
}
/// a·b, but for the product of the low parts.
Sum product_of(const Sum& a, const Sum& b) {
  const Lanes high = a.high * b.high;
  return {high, fma(a.low, b.high, fma(a.high, b.low, fma(a.high, b.high, -high)))};
}
Sum product_of(const Sum& a, Constant b) {
  return product_of(a, Sum{a.high.constant(b.high), a.high.constant(b.low)});
}

/// log2 of a positive finite f64 in double-double precision, by 2 atanh((m - 1) / (m + 1)): pow
/// multiplies its error by exponents of up to 1024.
Sum log2_twice_precise(const Lanes& x) {
  const auto [exponent, m] = parts_of(x);
  const Lanes above = m - 1, below = m + 1;
  const Lanes below_low = m - (below - 1);
  const Lanes quotient = above / below;
  const Lanes left = fma(-quotient, below_low, fma(-quotient, below, above));
  const Sum s = {quotient, left / below};
  const Sum square = product_of(s, s);
  const Sum third = product_of(square, kThird);
  const Lanes tail = fma(square.high * square.high, polynomial(square.high, kAtanh64), third.low);
  const Sum cubic = product_of(s, sum_of(third.high, tail));
  Sum atanh = sum_of(s.high, cubic.high);
  atanh.low = atanh.low + (cubic.low + s.low);
  const Sum log2 = product_of(atanh, Constant{2 * kLog2EFor64.high, 2 * kLog2EFor64.low});
  Sum result = sum_of(exponent, log2.high);
  result.low = result.low + log2.low;
  return result;
}

/// |x|^y, with x in f64; only the values of log2 at 0 and infinity are special cases.
Lanes power_of_magnitude(const Lanes& magnitude, const Lanes& y, bool precise) {
  if (!precise) return exp2(y * log2(magnitude), Precision::Exact);
  const Sum log = log2_twice_precise(magnitude);
  const Lanes rounded = with_special_values(magnitude, log.high);
  const Lanes high = y * rounded;
  const double most = 1100;
  const Lanes near = compare(Predicate::FCMP_OLT, abs(high), most);
  const Lanes low = fma(y, log.low, fma(y, rounded, -high));
  return exp2_of_sum(clamp_above(clamp_below(high, most), -most),
                     select(near, low, y.constant(0.0)));
}

/// pow from |x|^y, with the special cases of C.
Lanes with_sign_and_special_values(const Lanes& x, const Lanes& y, const Lanes& value) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Lanes magnitude = abs(x);
  const Lanes whole = compare(Predicate::FCMP_OEQ, intrinsic(llvm::Intrinsic::trunc, y), y);
  const Lanes half = y * 0.5;
  const Lanes odd =
      whole & compare(Predicate::FCMP_UNE, intrinsic(llvm::Intrinsic::trunc, half), half);
  const Lanes negative = compare(Predicate::FCMP_OLT, x, 0.0);
  const Lanes finite = compare(Predicate::FCMP_OLT, magnitude, infinity);
  const Lanes one =
      compare(Predicate::FCMP_OEQ, y, 0.0) | compare(Predicate::FCMP_OEQ, x, 1.0) |
      (compare(Predicate::FCMP_OEQ, x, -1.0) & compare(Predicate::FCMP_OEQ, abs(y), infinity));
  const Lanes no_root = negative & finite & compare(Predicate::FCMP_ORD, y, y) & ~whole;
  const Lanes magnitude_of_result = select(one, x.constant(1.0), value);
  const Lanes with_sign = select(odd, copysign(magnitude_of_result, x), magnitude_of_result);
  return select(no_root, x.constant(std::numeric_limits<double>::quiet_NaN()), with_sign);
}

}  // namespace

Lanes log(const Lanes& x) {
  const auto [exponent, m] = parts_of(x);
  const Lanes f = m - 1;
  const Constant ln2 = x.is_double() ? kLn2For64 : kLn2For32;
  const Lanes small = fma(exponent, ln2.low, log_beyond_linear(f));
  return with_special_values(x, fma(exponent, ln2.high, f + small));
}

Lanes log2(const Lanes& x) {
  const auto [exponent, m] = parts_of(x);
  const Lanes f = m - 1;
  const Constant log2e = x.is_double() ? kLog2EFor64 : kLog2EFor32;
  const Lanes small = fma(log_beyond_linear(f), log2e.high, f * log2e.low);
  return with_special_values(x, exponent + fma(f, log2e.high, small));
}

Lanes pow(const Lanes& x, const Lanes& y) {
  if (x.is_double()) return with_sign_and_special_values(x, y, power_of_magnitude(abs(x), y, true));
  llvm::Type* const wide = x.ir().getDoubleTy();
  const Lanes value = power_of_magnitude(abs(x).cast(llvm::Instruction::FPExt, wide),
                                         y.cast(llvm::Instruction::FPExt, wide), false);
  return with_sign_and_special_values(x, y, value.cast(llvm::Instruction::FPTrunc, x.element()));
}

}  // namespace tessera::codegen
