#include "tessera/expr/named_real.h"

#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace tessera::algebra {
namespace {

/// Whether the constant has the precision of f32: it is a number of that type, or the few decimal
/// digits by which one is written.
bool is_single(double constant) {
  return static_cast<double>(static_cast<float>(constant)) == constant ||
         std::strtod(fmt::format("{:.9g}", constant).c_str(), nullptr) == constant;
}

/// Whether the constant is the real rounded to its precision. Files hold literals that were rounded
/// once; a constant beside the nearest one is another number.
bool is_rounded(double constant, double real) {
  return is_single(constant) ? static_cast<float>(constant) == static_cast<float>(real)
                             : constant == real;
}

/// Whether the constant is the square of 1/sqrt(n), both rounded to f32, for a power of two: a
/// scale of attention that queries and keys had and that a tool has put together. (1/n itself has
/// an exact form, so nobody writes its neighbour for another reason.)
bool is_square_of_inverse_root(double constant, double n) {
  int exponent = 0;
  const auto root = static_cast<float>(1 / std::sqrt(n));
  return std::frexp(n, &exponent) == 0.5 && is_single(constant) &&
         static_cast<float>(constant) == root * root;
}

/// Whether the constant is within 2 units in the last place of a computed real.
bool is_near(double constant, double real) {
  const double size = std::fabs(constant);
  const auto single = static_cast<float>(size);
  const double unit = is_single(constant) ? static_cast<double>(std::nextafter(single, HUGE_VALF)) -
                                                static_cast<double>(single)
                                          : std::nextafter(size, HUGE_VAL) - size;
  // The largest number of a type has no next one: it stands for itself.
  return std::isfinite(unit) && std::fabs(constant - real) <= 2 * unit;
}

Sum pi() {
  return factor({.kind = Factor::Kind::Read, .name = "%pi"});
}

/// A decimal number of at most six digits.
std::optional<NamedReal> decimal(double constant) {
  for (int digits = 1; digits <= 6; ++digits) {
    const std::string text = fmt::format("{:.{}e}", constant, digits - 1);
    if (!is_rounded(constant, std::strtod(text.c_str(), nullptr))) continue;
    const std::size_t e = text.find('e');
    std::int64_t mantissa = 0;
    for (const char c : text.substr(0, e))
      if (c >= '0' && c <= '9') mantissa = mantissa * 10 + (c - '0');
    if (constant < 0) mantissa = -mantissa;
    const int exponent = std::atoi(text.c_str() + e + 1) - (digits - 1);
    const Rational value = Rational(mantissa) * Rational(10).power(exponent);
    if (value.is_undefined() || value == Rational::of(constant)) return std::nullopt;
    return NamedReal{value.to_string(), algebra::constant(value)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<NamedReal> named_real(Names& names, double constant) {
  if (!std::isfinite(constant) || constant == 0) return std::nullopt;
  // Few binary digits: 0.5, 3, 0.125 stand for themselves.
  if (const double scaled = constant * 4096;
      scaled == std::floor(scaled) && std::fabs(scaled) < 1e9)
    return std::nullopt;
  if (auto found = decimal(constant)) return found;
  const double size = std::fabs(constant);
  const auto named = [&](const std::string& name, Sum value) {
    const bool negative = constant < 0;
    return NamedReal{(negative ? "-" : "") + name, scaled(std::move(value), negative ? -1 : 1)};
  };
  constexpr double kMost = 65536;
  const double inverse = std::round(1 / size);
  if (inverse >= 1 && inverse <= kMost &&
      (is_rounded(size, 1 / inverse) || is_square_of_inverse_root(size, inverse)))
    return named(fmt::format("1/{:.0f}", inverse),
                 algebra::constant(Rational::of(1, static_cast<std::int64_t>(inverse))));
  const Rational half = Rational::of(1, 2);
  const double square = std::round(size * size), inverse_square = std::round(1 / (size * size));
  const auto is_square = [](double x) { return std::sqrt(x) == std::floor(std::sqrt(x)); };
  if (!is_square(square) && square >= 2 && square <= kMost && is_near(size, std::sqrt(square)))
    return named(fmt::format("sqrt({:.0f})", square),
                 power(names, algebra::constant(static_cast<std::int64_t>(square)), half));
  if (!is_square(inverse_square) && inverse_square >= 2 && inverse_square <= kMost &&
      is_near(size, 1 / std::sqrt(inverse_square)))
    return named(fmt::format("1/sqrt({:.0f})", inverse_square),
                 power(names, algebra::constant(static_cast<std::int64_t>(inverse_square)), -half));
  // q * pi^e
  struct Multiple {
    const char* name;
    std::int64_t numerator, denominator;  // of the square
    int twice_exponent;                   // of pi
  };
  constexpr std::array<Multiple, 9> kMultiples = {
      {{"pi", 1, 1, 2},
       {"sqrt(2/pi)", 2, 1, -1},
       {"sqrt(pi/2)", 1, 2, 1},
       {"1/sqrt(2*pi)", 1, 2, -1},
       {"0.044715*sqrt(2/pi)", 159'954'498, 40'000'000'000, -1},
       {"2/sqrt(pi)", 4, 1, -1},
       {"1/pi", 1, 1, -2},
       {"2*pi", 4, 1, 2},
       {"pi/2", 1, 4, 2}}};
  for (const Multiple& multiple : kMultiples) {
    const Rational squared = Rational::of(multiple.numerator, multiple.denominator);
    const double real =
        std::sqrt(squared.to_double()) * std::pow(std::acos(-1.0), multiple.twice_exponent / 2.0);
    if (!is_near(size, real)) continue;
    return named(multiple.name,
                 product(names, power(names, algebra::constant(squared), half),
                         power(names, pi(), Rational::of(multiple.twice_exponent, 2))));
  }
  return std::nullopt;
}

}  // namespace tessera::algebra
