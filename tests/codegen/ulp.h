#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tessera/tile/kernel.h"

namespace tessera::codegen {

/// A function of one f32 in double precision, by the C library.
struct Reference {
  tile::Function function;
  double (*of)(double);
};

inline const std::vector<Reference>& references() {
  using tile::Function;
  static const std::vector<Reference> all = {
      {Function::Exp, [](double x) { return std::exp(x); }},
      {Function::Exp2, [](double x) { return std::exp2(x); }},
      {Function::Sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {Function::Tanh, [](double x) { return std::tanh(x); }},
      {Function::Erf, [](double x) { return std::erf(x); }},
      {Function::Log, [](double x) { return std::log(x); }},
      {Function::Log2, [](double x) { return std::log2(x); }},
      {Function::Rsqrt, [](double x) { return 1 / std::sqrt(x); }},
      {Function::Sqrt, [](double x) { return std::sqrt(x); }},
      {Function::Sin, [](double x) { return std::sin(x); }},
      {Function::Cos, [](double x) { return std::cos(x); }},
  };
  return all;
}

/// A function of one f64 in higher precision.
struct LongReference {
  tile::Function function;
  long double (*of)(long double);
};

inline const std::vector<LongReference>& long_references() {
  using tile::Function;
  using Long = long double;
  static const std::vector<LongReference> all = {
      {Function::Exp, [](Long x) { return std::exp(x); }},
      {Function::Exp2, [](Long x) { return std::exp2(x); }},
      {Function::Sigmoid, [](Long x) { return 1 / (1 + std::exp(-x)); }},
      {Function::Tanh, [](Long x) { return std::tanh(x); }},
      {Function::Erf, [](Long x) { return std::erf(x); }},
      {Function::Log, [](Long x) { return std::log(x); }},
      {Function::Log2, [](Long x) { return std::log2(x); }},
      {Function::Rsqrt, [](Long x) { return 1 / std::sqrt(x); }},
      {Function::Sqrt, [](Long x) { return std::sqrt(x); }},
      {Function::Sin, [](Long x) { return std::sin(x); }},
      {Function::Cos, [](Long x) { return std::cos(x); }},
  };
  return all;
}

/// The distance from `found` to `exact` in units of the last place of a T near `exact`, which may
/// be subnormal. Infinite where one is NaN and the other is not, or a zero has the wrong sign.
/// A result that rounds to infinity may be infinite.
template <class T, class Exact>
double ulp_error(T found, Exact exact) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(exact)) return std::isnan(found) ? 0 : Limits::infinity();
  if (static_cast<Exact>(found) == exact)
    return std::signbit(found) == std::signbit(exact) ? 0 : Limits::infinity();
  int exponent = 0;
  std::frexp(exact, &exponent);
  exponent = std::min(std::max(exponent, Limits::min_exponent), Limits::max_exponent);
  const Exact unit = std::ldexp(Exact{1}, exponent - Limits::digits);
  if (std::isinf(found)) {  // as if the next number after the largest were there
    if (std::signbit(found) != std::signbit(exact)) return Limits::infinity();
    const Exact beyond = std::ldexp(Exact{1}, Limits::max_exponent);
    if (std::fabs(exact) >= beyond) return 0;
    return static_cast<double>(std::fabs(std::copysign(beyond, exact) - exact) / unit);
  }
  if (std::isinf(exact)) return Limits::infinity();
  return static_cast<double>(std::fabs(static_cast<Exact>(found) - exact) / unit);
}

}  // namespace tessera::codegen
