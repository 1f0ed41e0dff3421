#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tessera {

/// Storage of an IEEE binary16 number. Conversions round to nearest, ties to even.
struct Half {
  std::uint16_t bits = 0;
};

/// Storage of a bfloat16 number: the upper half of a binary32. Conversions round to nearest, ties
/// to even.
struct BFloat16 {
  std::uint16_t bits = 0;
};

inline float to_float(BFloat16 x) {
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16);
}

inline float to_float(Half x) {
  const std::uint32_t sign = std::uint32_t{x.bits & 0x8000u} << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 31u, mantissa = x.bits & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

/// Converts directly from double: a conversion by way of float would round twice.
inline Half to_half(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 48) & 0x8000u);
  if (std::isnan(x)) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  const double magnitude = std::fabs(x);
  if (magnitude >= 65520.0) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x1p-14) {  // subnormal: a multiple of 2^-24
    const auto steps = static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24));
    return {static_cast<std::uint16_t>(sign | steps)};
  }
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // in [1/2, 1)
  const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(fraction, 11)));
  const std::uint32_t combined = (static_cast<std::uint32_t>(exponent + 14) << 10) + (steps - 1024);
  return {static_cast<std::uint16_t>(sign | combined)};
}

inline BFloat16 to_bfloat16(double x) {
  if (std::isnan(x)) return {0x7fc0u};
  // Rounding to float first could round twice; round-to-odd makes the second rounding exact.
  auto narrow = static_cast<float>(x);
  auto bits = std::bit_cast<std::uint32_t>(narrow);
  if (std::isfinite(narrow) && static_cast<double>(narrow) != x) {
    if (std::fabs(static_cast<double>(narrow)) > std::fabs(x)) --bits;  // now truncated
    bits |= 1u;
  } else if (std::isinf(narrow) && std::isfinite(x)) {
    bits = (bits & 0x80000000u) | 0x7f7fffffu;  // the largest finite float, sticky bit set
  }
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<std::uint16_t>(bits >> 16)};
}

}  // namespace tessera
