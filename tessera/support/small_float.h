#pragma once

#include <cstdint>

#include "tessera/support/dtype.h"

namespace tessera {

/// Bit layout of a float of at most 8 bits: optional sign, exponent, mantissa. Subnormal numbers
/// are those of IEEE 754.
struct SmallFormat {
  /// Encoding of the values that are not finite.
  enum class Specials : std::uint8_t {
    Ieee,          // the largest exponent: infinities and NaN
    NanAtEnd,      // all bits but the sign set: NaN
    NanForMinus0,  // the sign alone: NaN
    None,
  };

  int exponent_bits = 0, mantissa_bits = 0, bias = 0;
  Specials specials = Specials::None;
  bool has_sign = true;  // without one: powers of two alone, neither 0 nor negative numbers

  /// Mask of the sign bit, which is above the magnitude.
  int sign_bit() const { return 1 << (exponent_bits + mantissa_bits); }
  /// Encodings of the largest finite number, of an overflow, and of NaN.
  int largest() const;
  int overflow() const;
  int nan() const;
};
/// Layout of a small float type.
const SmallFormat& small_format(DType dtype);

/// Decodes a small float.
float decoded(DType dtype, std::uint8_t bits);

/// Encodes the nearest number, ties to even. Overflow becomes infinity or, in types without it,
/// NaN; in f4e2m1, which has neither, it becomes the largest number, and NaN becomes 0. f8e8m0
/// rounds towards zero, and a number beyond its range on either side is NaN.
std::uint8_t encoded(DType dtype, double number);

/// Largest finite and smallest positive number of a small float type.
double largest_number(DType dtype);
double smallest_number(DType dtype);

/// Storage of one element of a small float type.
template <DType dtype>
struct SmallFloat {
  std::uint8_t bits = 0;
};
template <DType dtype>
float to_float(SmallFloat<dtype> x) {
  return decoded(dtype, x.bits);
}

}  // namespace tessera
