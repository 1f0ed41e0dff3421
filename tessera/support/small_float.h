#pragma once

#include <cstdint>

#include "tessera/support/dtype.h"

namespace tessera {

/// A small float as its bits are laid out: a sign if there is one, the exponent, the mantissa.
/// Subnormal numbers are those of IEEE 754.
struct SmallFormat {
  /// What has no place among the finite numbers.
  enum class Specials : std::uint8_t {
    Ieee,          // the largest exponent: infinities and NaN
    NanAtEnd,      // all bits but the sign set: NaN
    NanForMinus0,  // the sign alone: NaN
    None,
  };

  int exponent_bits = 0, mantissa_bits = 0, bias = 0;
  Specials specials = Specials::None;
  bool has_sign = true;  // without one: powers of two alone, neither 0 nor negative numbers

  /// The bit of the sign, which stands above those of the magnitude.
  int sign_bit() const { return 1 << (exponent_bits + mantissa_bits); }
  /// The bits of the largest finite number, of what a larger one becomes, and of NaN.
  int largest() const;
  int overflow() const;
  int nan() const;
};
const SmallFormat& small_format(DType dtype);

/// The number with these bits.
float decoded(DType dtype, std::uint8_t bits);

/// The bits of the nearest number, ties to even. What is beyond the largest becomes infinity or, in
/// types without it, NaN; in f4e2m1, which has neither, the largest, and NaN becomes 0. f8e8m0
/// rounds towards zero, and what is beyond its range on either side is NaN.
std::uint8_t encoded(DType dtype, double number);

/// The largest finite number of a small float, and the smallest that is greater than 0.
double largest_number(DType dtype);
double smallest_number(DType dtype);

/// A small float as stored.
template <DType dtype>
struct SmallFloat {
  std::uint8_t bits = 0;
};
template <DType dtype>
float to_float(SmallFloat<dtype> x) {
  return decoded(dtype, x.bits);
}

}  // namespace tessera
