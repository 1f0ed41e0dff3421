#include "tessera/support/small_float.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/support/check.h"

namespace tessera {
namespace {

using Specials = SmallFormat::Specials;

constexpr SmallFormat kE4M3Fn = {4, 3, 7, Specials::NanAtEnd};
constexpr SmallFormat kE4M3Fnuz = {4, 3, 8, Specials::NanForMinus0};
constexpr SmallFormat kE5M2 = {5, 2, 15, Specials::Ieee};
constexpr SmallFormat kE5M2Fnuz = {5, 2, 16, Specials::NanForMinus0};
constexpr SmallFormat kE8M0 = {8, 0, 127, Specials::NanAtEnd, false};
constexpr SmallFormat kE2M1 = {2, 1, 1, Specials::None};

}  // namespace

const SmallFormat& small_format(DType dtype) {
  switch (dtype) {
    case DType::F8E4M3FN: return kE4M3Fn;
    case DType::F8E4M3FNUZ: return kE4M3Fnuz;
    case DType::F8E5M2: return kE5M2;
    case DType::F8E5M2FNUZ: return kE5M2Fnuz;
    case DType::F8E8M0: return kE8M0;
    case DType::F4E2M1: return kE2M1;
    default: break;
  }
  TESSERA_CHECK(false, "{} is no small float", to_string(dtype));
  return kE2M1;
}

int SmallFormat::largest() const {
  switch (specials) {
    case Specials::Ieee: return sign_bit() - (1 << mantissa_bits) - 1;
    case Specials::NanAtEnd: return sign_bit() - 2;
    case Specials::NanForMinus0:
    case Specials::None: break;
  }
  return sign_bit() - 1;
}

int SmallFormat::overflow() const {
  switch (specials) {
    case Specials::Ieee: return largest() + 1;
    case Specials::None: return largest();
    case Specials::NanAtEnd:
    case Specials::NanForMinus0: break;
  }
  return nan();
}

int SmallFormat::nan() const {
  switch (specials) {
    case Specials::Ieee: return sign_bit() - (1 << (mantissa_bits - 1));  // quiet
    case Specials::NanAtEnd: return sign_bit() - 1;
    case Specials::NanForMinus0: return sign_bit();
    case Specials::None: break;
  }
  return 0;
}

float decoded(DType dtype, std::uint8_t bits) {
  const SmallFormat& f = small_format(dtype);
  const int magnitude = bits & (f.sign_bit() - 1);
  const int exponent = magnitude >> f.mantissa_bits;
  const int implicit = 1 << f.mantissa_bits, mantissa = magnitude & (implicit - 1);
  const int ulp = std::max(exponent, f.has_sign ? 1 : 0) - f.bias - f.mantissa_bits;
  const bool is_normal = exponent > 0 || !f.has_sign;
  float number = std::ldexp(static_cast<float>(is_normal ? implicit + mantissa : mantissa), ulp);
  const bool is_minus0 = f.has_sign && bits == f.sign_bit();
  if (f.specials == Specials::NanForMinus0 ? is_minus0 : magnitude > f.largest()) {
    const bool infinite = f.specials == Specials::Ieee && magnitude == f.overflow();
    number =
        infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  }
  return f.has_sign && (bits & f.sign_bit()) != 0 ? -number : number;
}

std::uint8_t encoded(DType dtype, double number) {
  const SmallFormat& f = small_format(dtype);
  const int sign = f.has_sign && std::signbit(number) ? f.sign_bit() : 0;
  const auto with_sign = [&](int magnitude) {
    // Types without a negative zero use its encoding for their only NaN.
    const bool has_no_sign =
        f.specials == Specials::NanForMinus0 && (magnitude == 0 || magnitude == f.nan());
    return static_cast<std::uint8_t>(has_no_sign ? magnitude : magnitude | sign);
  };
  if (std::isnan(number)) return f.specials == Specials::None ? 0 : with_sign(f.nan());
  if (!f.has_sign) {
    if (!(number >= smallest_number(dtype)) || std::isinf(number)) return with_sign(f.nan());
    return with_sign(std::min(std::ilogb(number) + f.bias, f.nan()));
  }
  if (std::isinf(number)) return with_sign(f.overflow());
  const double size = std::fabs(number);
  const int exponent = size == 0 ? 1 - f.bias : std::max(std::ilogb(size), 1 - f.bias);
  // A mantissa of a normal number has the implicit bit, which adds 1 to the exponent; so does one
  // that is rounded up to the next power of two.
  const auto mantissa =
      static_cast<int>(std::nearbyint(std::ldexp(size, f.mantissa_bits - exponent)));
  const int magnitude = ((exponent + f.bias - 1) << f.mantissa_bits) + mantissa;
  return with_sign(magnitude > f.largest() ? f.overflow() : magnitude);
}

double largest_number(DType dtype) {
  return decoded(dtype, static_cast<std::uint8_t>(small_format(dtype).largest()));
}

double smallest_number(DType dtype) {
  return decoded(dtype, small_format(dtype).has_sign ? 1 : 0);
}

}  // namespace tessera
