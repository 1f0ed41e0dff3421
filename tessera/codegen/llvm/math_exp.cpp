#include <cmath>
#include <numbers>

#include "tessera/codegen/llvm/avx512.h"
#include "tessera/codegen/llvm/functions.h"
#include "tessera/codegen/llvm/nvptx.h"

// exp and related functions. With n the integer nearest to x / ln 2 and r = x - n ln 2, exp(x) is
// 2^n exp(r), and exp(r) a polynomial on |r| <= ln 2 / 2. The coefficients are minimax in relative
// error (Remez), rounded to the format.

namespace tessera::codegen {
namespace {

// (exp(r) - 1) / r and (2^r - 1) / r; for Fast, 2 (exp(r) - 1) / r.
constexpr double kExpFast[] = {0x1.fffff6p+0, 0x1.fffdc0p-1, 0x1.555a78p-2, 0x1.573c50p-4,
                               0x1.0fa5fep-6};
constexpr double kExp2Fast[] = {0x1.62e42ap+0, 0x1.ebf9bcp-2, 0x1.c6b758p-4, 0x1.3cea94p-6,
                                0x1.5bb924p-9};
constexpr double kExp32[] = {
    1, 0x1.fffffap-2, 0x1.555408p-3, 0x1.5558a2p-5, 0x1.126e6ep-7, 0x1.6ab814p-10};
constexpr double kExp232[] = {0x1.62e430p-1, 0x1.ebfbdap-3,  0x1.c6aed4p-5,
                              0x1.3b2dbcp-7, 0x1.5f456cp-10, 0x1.41d32cp-13};
constexpr double kExp64[] = {1,
                             0x1.0000000000010p-1,
                             0x1.555555555549ep-3,
                             0x1.555555554f1dfp-5,
                             0x1.1111111131602p-7,
                             0x1.6c16c187d5488p-10,
                             0x1.a01a010e9facbp-13,
                             0x1.a01991ee412dfp-16,
                             0x1.71df47394ab4fp-19,
                             0x1.28b3e471e0229p-22,
                             0x1.ad652ab6c5c61p-26};
constexpr double kExp264[] = {0x1.62e42fefa39efp-1,  0x1.ebfbdff82c5adp-3,  0x1.c6b08d7049fd1p-5,
                              0x1.3b2ab6fb9f413p-7,  0x1.5d87fe78cf265p-10, 0x1.43091310bf6eap-13,
                              0x1.ffcbfba7be33ap-17, 0x1.62bfc3c1b02fep-20, 0x1.b526787cc85aep-24,
                              0x1.e620fbb041aaap-28, 0x1.e7aa26982d0abp-32};

/// A base b and a format. ln_b 2 is
/// high + low, 0 for base 2, where r = x - n is exact.
struct Base {
  double log2;  // of b
  double high = 0, low = 0;
  std::span<const double> fast = {}, exact;
};

constexpr double kLog2E = std::numbers::log2e;
constexpr Base kE32 = {kLog2E, 0x1.62e430p-1, -0x1.05c610p-29, kExpFast, kExp32};
constexpr Base kTwo32 = {1, 0, 0, kExp2Fast, kExp232};
constexpr Base kE64 = {kLog2E, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56, {}, kExp64};
constexpr Base kTwo64 = {1, 0, 0, {}, kExp264};

/// The bits of a format.
struct Format {
  unsigned mantissa;
  int bias;
  double integers() const { return std::ldexp(1.5, static_cast<int>(mantissa)); }
};
Format format_of(const Lanes& x) {
  return x.is_double() ? Format{52, 1023} : Format{23, 127};
}

/// x split as n ln_b 2 + r. n comes as it is and as the low bits of an integer, `bias` added.
struct Split {
  Lanes biased, n, r;
};
Split split(const Lanes& x, const Base& base, int bias, bool with_low) {
  // Adding 1.5 · 2^mantissa rounds to an integer and leaves it in the low bits.
  const double shift = format_of(x).integers() + bias;
  const Lanes shifted = base.log2 == 1 ? x + shift : fma(x, base.log2, shift);
  const Lanes n = shifted - shift;
  if (base.log2 == 1) return {shifted.as_integer(), n, x - n};
  const Lanes r = fma(n, -base.high, x);
  return {shifted.as_integer(), n, with_low ? fma(n, -base.low, r) : r};
}

/// 1 + c[0] r + c[1] r² …, where errors of the polynomial count only as far as |r| is below 1.
Lanes one_and(const Lanes& r, std::span<const double> c) {
  return fma(r, polynomial(r, c), 1.0);
}

/// y · 2^n for n + 2 bias in `biased`, rounded once: by two factors, as 2^n itself may be out of
/// range where the result is not.
Lanes scale_twice(const Lanes& y, const Lanes& biased) {
  const unsigned mantissa = format_of(y).mantissa;
  const Lanes half = shift_right(biased, 1);
  const Lanes rest = biased - half;
  return y * shift_left(half, mantissa).as_float() * shift_left(rest, mantissa).as_float();
}

Lanes limited(const Lanes& x, double least, double most, Sign sign) {
  return clamp_above(sign == Sign::NotPositive ? x : clamp_below(x, most), least);
}

/// Exponential on CPUs that scale vectors by any power of 2 in one instruction: only base e needs
/// limits, for its n. For Fast, subnormal results are 0, as elsewhere: arithmetic with subnormal
/// operands takes a microcode assist of some hundred cycles, and masked scores of attention are
/// often just that low (exp(-100)).
Lanes exponential_by_scaling(const Lanes& x, const Base& base, bool fast, Sign sign) {
  std::vector<double> c(base.exact.begin(), base.exact.end());
  if (fast) {
    c.clear();
    for (const double twice : base.fast) c.push_back(twice / 2);
    const Format format = format_of(x);
    const double least = (1 - format.bias) / base.log2, most = (format.bias + 2) / base.log2;
    // Unordered: NaN is kept. Below `least` anything may become of n and r.
    const Lanes kept = compare(llvm::CmpInst::FCMP_UGE, x, least);
    if (base.log2 == 1) {
      const Lanes r = avx512::fraction(x);
      return avx512::scaled_or_zero(one_and(r, c), x - r, kept);
    }
    const auto [_, n, r] =
        split(sign == Sign::NotPositive ? x : clamp_below(x, most), base, 0, false);
    return avx512::scaled_or_zero(one_and(r, c), n, kept);
  }
  if (base.log2 == 1) {
    const Lanes r = avx512::fraction(x);
    return avx512::scaled(one_and(r, c), x - r);
  }
  const double most = 2 * format_of(x).bias / base.log2;
  const auto [_, n, r] = split(limited(x, -most, most, sign), base, 0, true);
  return avx512::scaled(one_and(r, c), n);
}

Lanes exponential(const Lanes& x, const Base& base, Precision precision, Sign sign) {
  const Format format = format_of(x);
  const bool fast = precision == Precision::Fast && !base.fast.empty();
  if (avx512::takes(x)) return exponential_by_scaling(x, base, fast, sign);
  if (fast) {
    // 2 exp(r) · 2^(n - 1), so that exponents reach 128. At the smallest n the factor is 0.
    const double least = -format.bias + 0.8, most = format.bias + 1.4;
    const Lanes near = limited(x, least / base.log2, most / base.log2, sign);
    const auto [biased, n, r] = split(near, base, format.bias - 1, false);
    return fma(r, polynomial(r, base.fast), 2.0) * shift_left(biased, format.mantissa).as_float();
  }
  const double most = format.bias + 2, least = -format.bias - static_cast<int>(format.mantissa) - 2;
  const Lanes near = limited(x, least / base.log2, most / base.log2, sign);
  const auto [biased, n, r] = split(near, base, 2 * format.bias, true);
  return scale_twice(one_and(r, base.exact), biased);
}

/// exp where neither the result nor 2^n leaves the range of normal numbers.
Lanes exp_in_range(const Lanes& x) {
  const Format format = format_of(x);
  const Base& base = x.is_double() ? kE64 : kE32;
  const auto [biased, n, r] = split(x, base, format.bias, true);
  return one_and(r, base.exact) * shift_left(biased, format.mantissa).as_float();
}

/// a / b for a divisor that is at least 1 and far from infinity.
Lanes divided(const Lanes& a, const Lanes& b) {
  return nvptx::takes(b) ? nvptx::quotient(a, b) : a / b;
}

/// The same within 2 ulp.
Lanes nearly_divided(const Lanes& a, const Lanes& b) {
  return avx512::takes(b) && !b.is_double() ? avx512::quotient(a, b) : a / b;
}

// (tanh(x) - x) / x³ in x², up to tanh(x) = 0.5.
constexpr double kTanhBound = 0.5625;
constexpr double kTanh32[] = {-0x1.555548p-2, 0x1.110c74p-3, -0x1.b90960p-5, 0x1.58303ep-6,
                              -0x1.950222p-8};
constexpr double kTanh64[] = {
    -0x1.5555555555555p-2,  0x1.111111111110bp-3,  -0x1.ba1ba1ba1b1afp-5,  0x1.664f4882927a8p-6,
    -0x1.226e3554e981ep-7,  0x1.d6d3ce612cb1fp-9,  -0x1.7da32b4f2b360p-10, 0x1.355499c9e0ef0p-11,
    -0x1.f52dca0b333e6p-13, 0x1.9403f00154b3cp-14, -0x1.3bba26d07daa2p-15, 0x1.aeaf16f0e71c3p-17,
    -0x1.708c75c8c1496p-19};
constexpr Coefficients kTanh = {kTanh32, kTanh64};

// erf(x) / x - 1 in x² below the bound; log(erfc(x)) / x above, weighted by what it counts for.
constexpr double kErfBound = 0.925;
constexpr double kErfSmall32[] = {0x1.06eba6p-3,  -0x1.8126dcp-2, 0x1.ce1906p-4,
                                  -0x1.b676d4p-6, 0x1.46c246p-8,  -0x1.3825b2p-11};
constexpr double kErfLarge32[] = {-0x1.20e8c4p+0, -0x1.4570aep-1, -0x1.af27f0p-4, 0x1.737e36p-6,
                                  -0x1.800fb2p-9, 0x1.9ff520p-15, 0x1.7e5d1ap-15, -0x1.4b65fep-18};
constexpr double kErfSmall64[] = {
    0x1.06eba8214db68p-3,  -0x1.812746b0379dep-2,  0x1.ce2f21a042454p-4,  -0x1.b82ce31260533p-6,
    0x1.565bcd076d885p-8,  -0x1.c02db292119c9p-11, 0x1.f9a2f751f4523p-14, -0x1.f4ce436d8fc3ap-17,
    0x1.b9aa579b5f1d2p-20, -0x1.5d22709f143b6p-23, 0x1.df705aac0e980p-27, -0x1.c6c7ff45e9c93p-31};
constexpr Coefficients kErfSmall = {kErfSmall32, kErfSmall64};
constexpr double kErfLarge64[] = {
    -0x1.20dd759fc7e65p+0,  -0x1.45f2f875b919ap-1,  -0x1.a4f764e383e56p-4,  0x1.3989877585510p-6,
    0x1.8bdaab180beedp-13,  -0x1.b2dd1b5c8b3b6p-10, 0x1.19babac95acc0p-11,  0x1.1617cf9af439bp-15,
    -0x1.ec8bfbb36e5dcp-14, 0x1.1d0c9ae4ebda1p-14,  -0x1.ac323782a19ebp-16, 0x1.e145854d7c1bdp-18,
    -0x1.a4566ed6a0c9ep-20, 0x1.1e8def13d966cp-22,  -0x1.2c9709bc83bb6p-25, 0x1.d5aa9f5c3507cp-29,
    -0x1.01996f60b42c6p-32, 0x1.620be55f1ac3fp-37,  -0x1.ca9a05b3e5133p-43};
constexpr Coefficients kErfLarge = {kErfLarge32, kErfLarge64};

/// `small` where |x| is below the bound, else `large`; with the sign of x.
Lanes join(const Lanes& x, double bound, const Lanes& small, const Lanes& large) {
  return copysign(select(compare(llvm::CmpInst::FCMP_OLT, abs(x), bound), small, large), x);
}

// For Fast: odd functions, as |x| P(x²) / Q(x²) below the bound. There the quotient is 6e-7 above
// 1, more than its rounding, and is clamped to exactly 1: in x (1 + erf(x)), any rest is multiplied
// by x.
struct Quotient {
  double bound;
  std::span<const double> above, below;
};
constexpr double kTanhAbove[] = {1, 0x1.1207b0p-3, 0x1.ca126cp-9, 0x1.598c5ep-16, 0x1.ca4046p-27};
constexpr double kTanhBelow[] = {1, 0x1.de5920p-2, 0x1.a7eb8ap-6, 0x1.5863fap-12, 0x1.a11c4ap-21};
constexpr Quotient kTanhFast = {9.6, kTanhAbove, kTanhBelow};
constexpr double kErfAbove[] = {0x1.20dd74p+0, 0x1.85f49ap-3,  0x1.b01e82p-5,
                                0x1.ed9342p-9, 0x1.2ab900p-12, 0x1.132814p-19};
constexpr double kErfBelow[] = {
    1, 0x1.01104ap-1, 0x1.d364b8p-4, 0x1.ea83f8p-7, 0x1.30c176p-10, 0x1.3f893ep-15};
constexpr Quotient kErfFast = {4.1, kErfAbove, kErfBelow};

Lanes quotient(const Lanes& x, const Quotient& q) {
  const Lanes near = clamp_below(abs(x), q.bound), square = near * near;
  const Lanes value =
      nearly_divided(near * polynomial(square, q.above), polynomial(square, q.below));
  return copysign(clamp_below(value, 1), x);
}

}  // namespace

Lanes exp(const Lanes& x, Precision precision, Sign sign) {
  return exponential(x, x.is_double() ? kE64 : kE32, precision, sign);
}

Lanes exp2(const Lanes& x, Precision precision, Sign sign) {
  return exponential(x, x.is_double() ? kTwo64 : kTwo32, precision, sign);
}

Lanes exp2_of_sum(const Lanes& high, const Lanes& low) {
  const auto [biased, n, r] = split(high, kTwo64, 2 * format_of(high).bias, true);
  return scale_twice(one_and(r + low, kExp264), biased);
}

Lanes sigmoid(const Lanes& x, Precision precision) {
  const Lanes one = x.constant(1.0);
  if (precision == Precision::Fast) {
    // Up to 2^126: of more, the quotient is no normal number.
    const double most = (format_of(x).bias - 1) / kLog2E;
    return nearly_divided(one, exp(clamp_below(-x, most), precision) + 1);
  }
  // By the exponential of a negative number, which loses nothing where the result is subnormal:
  // 1 - q, or e - e q, where q = e / (1 + e) has errors that count little where it is small.
  const Lanes e = exp(-abs(x), precision);
  const Lanes base = select(compare(llvm::CmpInst::FCMP_OLT, x, 0), e, one);
  return fma(-base, divided(e, e + 1), base);
}

Lanes tanh(const Lanes& x, Precision precision) {
  if (precision == Precision::Fast && !x.is_double()) return quotient(x, kTanhFast);
  const Lanes square = x * x;
  const Lanes small = fma(x * square, polynomial(square, kTanh), x);
  const Lanes e = exp_in_range(clamp_below(abs(x), 20) * 2);
  const Lanes large = x.constant(1.0) - divided(x.constant(2.0), e + 1);
  return join(x, kTanhBound, small, large);
}

Lanes erf(const Lanes& x, Precision precision) {
  if (precision == Precision::Fast && !x.is_double()) return quotient(x, kErfFast);
  const Lanes square = x * x;
  const Lanes small = fma(x, polynomial(square, kErfSmall), x);
  const Lanes near = clamp_below(abs(x), x.is_double() ? 5.95 : 3.95);  // beyond it is 1
  const Lanes e = exp_in_range(near * polynomial(near, kErfLarge));
  return join(x, kErfBound, small, x.constant(1.0) - e);
}

}  // namespace tessera::codegen
