#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tessera/expr/field.h"
#include "tessera/expr/scalar.h"

namespace tessera {

/// Arithmetic of an evaluation's number type: float and double natively, int64 exactly (functions
/// that leave the integers give 0), prime fields by PrimeField.
template <class T>
inline constexpr bool kIsField = !std::is_arithmetic_v<T>;

template <class T>
T number_of(double number) {
  if constexpr (kIsField<T>) {
    return T::of_double(number);
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(number)) return 0;
    if (number <= -0x1p63) return std::numeric_limits<T>::min();
    if (number >= 0x1p63) return std::numeric_limits<T>::max();
    return static_cast<T>(number);
  } else {
    return static_cast<T>(number);
  }
}

template <class T>
T number_of_integer(std::int64_t integer, bool is_unsigned) {
  if constexpr (kIsField<T>) {
    return is_unsigned ? T::of_word(static_cast<std::uint64_t>(integer)) : T::of_integer(integer);
  } else {
    return is_unsigned ? static_cast<T>(static_cast<std::uint64_t>(integer))
                       : static_cast<T>(integer);
  }
}

template <class T>
bool is_less(T a, T b) {
  return a < b;
}

/// Maximum and minimum that propagate NaN, as NumPy's do.
template <class T>
T larger(T a, T b) {
  if constexpr (kIsField<T>) return T::larger(a, b);
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  return a < b ? b : a;
}
template <class T>
T smaller(T a, T b) {
  if constexpr (kIsField<T>) return T::smaller(a, b);
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  return b < a ? b : a;
}

namespace integer {

// Arithmetic modulo 2^64, without undefined cases.
inline std::int64_t wrap(std::uint64_t word) {
  return static_cast<std::int64_t>(word);
}
inline std::uint64_t word(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}
inline std::int64_t add(std::int64_t a, std::int64_t b) {
  return wrap(word(a) + word(b));
}
inline std::int64_t sub(std::int64_t a, std::int64_t b) {
  return wrap(word(a) - word(b));
}
inline std::int64_t mul(std::int64_t a, std::int64_t b) {
  return wrap(word(a) * word(b));
}
inline std::int64_t div(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? sub(0, a) : a / b;
}
inline std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return sub(0, a);
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
inline std::int64_t mod(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline std::int64_t pow(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  std::int64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base = mul(base, base))
    if ((exponent & 1) != 0) result = mul(result, base);
  return result;
}
inline std::int64_t shift_left(std::int64_t a, std::int64_t b) {
  return b < 0 || b > 63 ? 0 : wrap(word(a) << b);
}
inline std::int64_t shift_right(std::int64_t a, std::int64_t b, bool is_unsigned) {
  if (b < 0) return 0;
  if (is_unsigned) return b > 63 ? 0 : wrap(word(a) >> b);
  return a >> (b > 63 ? 63 : b);
}

}  // namespace integer

/// Applies a unary scalar function to a Value.
template <class T>
T apply_unary(Fn fn, T x) {
  if constexpr (kIsField<T>) {
    // Keyed functions, with the facts that docs/verification.md declares.
    const auto key = static_cast<std::uint64_t>(fn);
    switch (fn) {
      case Fn::Neg: return T() - x;
      case Fn::Abs: return T::larger(x, T() - x);
      case Fn::Tanh:
      case Fn::Erf:
      case Fn::Sin:
      case Fn::Atan: return x * T::keyed(key, x * x);
      case Fn::Cos: return T::of_integer(1) + x * x * T::keyed(key, x * x);
      default: return T::keyed(key, x);
    }
  } else if constexpr (std::is_integral_v<T>) {
    switch (fn) {
      case Fn::Neg: return integer::sub(0, x);
      case Fn::Abs: return x < 0 ? integer::sub(0, x) : x;
      case Fn::Floor:
      case Fn::Round: return x;
      default: return 0;
    }
  } else {
    switch (fn) {
      case Fn::Neg: return -x;
      case Fn::Abs: return std::fabs(x);
      case Fn::Exp: return std::exp(x);
      case Fn::Log: return std::log(x);
      case Fn::Sqrt: return std::sqrt(x);
      case Fn::Sin: return std::sin(x);
      case Fn::Cos: return std::cos(x);
      case Fn::Atan: return std::atan(x);
      case Fn::Tanh: return std::tanh(x);
      case Fn::Erf: return std::erf(x);
      case Fn::Floor: return std::floor(x);
      case Fn::Round: return std::nearbyint(x);
      default: return x;
    }
  }
}

/// Applies a binary function other than plain arithmetic: Pow, FloorDiv or Mod.
template <class T>
T apply_binary(Fn fn, T a, T b) {
  if constexpr (kIsField<T>) {
    return T::keyed(static_cast<std::uint64_t>(fn), a, b);
  } else if constexpr (std::is_integral_v<T>) {
    if (fn == Fn::Pow) return integer::pow(a, b);
    return fn == Fn::FloorDiv ? integer::floor_div(a, b) : integer::mod(a, b);
  } else {
    if (fn == Fn::Pow) return std::pow(a, b);
    if (fn == Fn::FloorDiv) return std::floor(a / b);
    const T rest = std::fmod(a, b);
    return rest != 0 && std::signbit(rest) != std::signbit(b) ? rest + b : rest;
  }
}

}  // namespace tessera
