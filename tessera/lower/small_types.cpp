#include "tessera/lower/small_types.h"

#include <cmath>

#include "tessera/support/small_float.h"

namespace tessera::lower {
namespace {

using tile::Function;
using Id = tile::ValueId;
using Specials = SmallFormat::Specials;

/// Arithmetic on tiles of integers of one type.
class WordOps {
 public:
  WordOps(tile::Builder& builder, const tile::Type& type) : b_(builder), type_(type) {}

  Id constant(std::int64_t word) const { return b_.constant(type_, tile::Literal{0, word}); }
  Id map(Function function, Id a, std::int64_t b) const {
    return b_.map(function, {a, constant(b)});
  }
  Id either(Id condition, Id then, Id otherwise) const {
    return b_.map(Function::Select, {condition, then, otherwise});
  }

 private:
  tile::Builder& b_;
  tile::Type type_;
};

/// How a float that is computed with is laid out.
struct WideFormat {
  DType word;
  int mantissa_bits, bias;

  int sign_position() const { return bit_width(word) - 1; }
};
constexpr WideFormat kF32 = {DType::I32, 23, 127}, kF64 = {DType::I64, 52, 1023};
constexpr std::int64_t kNanF32 = 0x7fc00000, kInfinityF32 = 0x7f800000;

/// The bits of a small float as an f32, which has every number of it.
Id decode(tile::Builder& b, Id stored, const SmallFormat& f) {
  const Id bits = b.cast(stored, DType::I32);
  const WordOps words(b, b.type(bits));
  const Id nan = words.constant(kNanF32);
  const int shift = kF32.mantissa_bits - f.mantissa_bits;
  if (!f.has_sign) {
    // The least number is subnormal in f32.
    const Id normal = words.map(Function::Shl, bits, shift);
    const Id number =
        words.either(words.map(Function::Equal, bits, 0), words.constant(1 << (shift - 1)), normal);
    return b.bitcast(words.either(words.map(Function::Equal, bits, f.nan()), nan, number),
                     DType::F32);
  }
  const Id magnitude = words.map(Function::And, bits, f.sign_bit() - 1);
  const Id moved = words.map(Function::Shl, magnitude, shift);
  const Id normal =
      words.map(Function::Add, moved, std::int64_t{kF32.bias - f.bias} << kF32.mantissa_bits);
  const Id counted = b.cast(magnitude, DType::F32);
  const double step = std::ldexp(1.0, 1 - f.bias - f.mantissa_bits);
  const Id subnormal = b.bitcast(b.mul(counted, b.constant(b.type(counted), step)), DType::I32);
  Id number =
      words.either(words.map(Function::Less, magnitude, 1 << f.mantissa_bits), subnormal, normal);
  if (f.specials == Specials::Ieee)
    number = words.either(words.map(Function::Greater, magnitude, f.largest()),
                          words.map(Function::Or, moved, kInfinityF32), number);
  if (f.specials == Specials::NanAtEnd)
    number = words.either(words.map(Function::Greater, magnitude, f.largest()), nan, number);
  const Id sign = words.map(Function::Shl, words.map(Function::And, bits, f.sign_bit()),
                            31 - f.exponent_bits - f.mantissa_bits);
  number = b.map(Function::Or, {number, sign});
  if (f.specials == Specials::NanForMinus0)
    number = words.either(words.map(Function::Equal, bits, f.nan()), nan, number);
  return b.bitcast(number, DType::F32);
}

/// The bits of the small float that an f32 or f64 is rounded to.
Id encode(tile::Builder& b, Id x, const SmallFormat& f) {
  const WideFormat& wide = b.type(x).dtype == DType::F64 ? kF64 : kF32;
  const Id bits = b.bitcast(x, wide.word);
  const WordOps words(b, b.type(bits));
  const auto power = [&](int exponent) {  // the bits of 2^exponent
    return std::int64_t{exponent + wide.bias} << wide.mantissa_bits;
  };
  const std::int64_t infinity = power(wide.bias + 1);
  const Id magnitude = words.map(Function::And, bits, infinity | (power(1 - wide.bias) - 1));
  const int shift = wide.mantissa_bits - f.mantissa_bits;
  const std::int64_t rebias = std::int64_t{wide.bias - f.bias} << f.mantissa_bits;
  if (!f.has_sign) {
    const Id exponent =
        words.map(Function::Sub, words.map(Function::Shr, magnitude, shift), rebias);
    const Id least = b.constant(b.type(x), std::ldexp(1.0, -f.bias));
    const Id code =
        words.either(b.map(Function::GreaterEqual, {x, least}),
                     words.map(Function::Min, exponent, f.nan()), words.constant(f.nan()));
    return b.cast(code, DType::U8);
  }
  // To nearest, ties to even: the half that is added is one less where the last bit is 0.
  const Id last = words.map(Function::And, words.map(Function::Shr, magnitude, shift), 1);
  const Id half = words.map(Function::Add, last, (std::int64_t{1} << (shift - 1)) - 1);
  const Id rounded = b.add(magnitude, half);
  const Id normal = words.map(Function::Sub, words.map(Function::Shr, rounded, shift), rebias);
  // Added to a number whose last bit is the least subnormal number, the sum is rounded to it.
  const int base = 1 - f.bias - f.mantissa_bits + wide.mantissa_bits;
  const Id size = b.bitcast(magnitude, b.type(x).dtype);
  const Id sum = b.add(size, b.constant(b.type(size), std::ldexp(1.0, base)));
  const Id subnormal = words.map(Function::Sub, b.bitcast(sum, wide.word), power(base));
  Id code =
      words.either(words.map(Function::Less, magnitude, power(1 - f.bias)), subnormal, normal);
  code = words.either(words.map(Function::Greater, code, f.largest()), words.constant(f.overflow()),
                      code);
  const Id is_nan = words.map(Function::Greater, magnitude, infinity);
  code = words.either(is_nan, words.constant(f.nan()), code);
  const Id sign =
      words.map(Function::And, words.map(Function::Shr, bits, wide.sign_position()), f.sign_bit());
  Id with_sign = b.map(Function::Or, {code, sign});
  // Where there is one zero, it has no sign; nor has one that stands for NaN.
  if (f.specials == Specials::NanForMinus0)
    with_sign = words.either(words.map(Function::Equal, code, 0), code, with_sign);
  if (f.specials == Specials::None) with_sign = words.either(is_nan, code, with_sign);
  return b.cast(with_sign, DType::U8);
}

}  // namespace

tile::ValueId from_storage(tile::Builder& builder, tile::ValueId stored, DType dtype, DType to) {
  if (is_small(dtype) && is_float(dtype)) stored = decode(builder, stored, small_format(dtype));
  return builder.type(stored).dtype == to ? stored : builder.cast(stored, to);
}

tile::ValueId to_storage(tile::Builder& builder, tile::ValueId x, DType dtype) {
  const DType from = builder.type(x).dtype;
  if (is_small(dtype) && is_float(dtype)) {
    const bool computed = from == DType::F32 || from == DType::F64;
    return encode(builder, computed ? x : builder.cast(x, DType::F32), small_format(dtype));
  }
  const DType storage = storage_of(dtype);
  const Id stored = from == storage ? x : builder.cast(x, storage);
  if (!is_small(dtype)) return stored;
  const WordOps words(builder, builder.type(stored));
  const int unused = 8 - bit_width(dtype);
  return words.map(Function::Shr, words.map(Function::Shl, stored, unused), unused);
}

}  // namespace tessera::lower
