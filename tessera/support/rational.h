#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

/// Exact fraction in lowest terms. A result that exceeds 127 bits, or a division by zero, is
/// `undefined`, which propagates like NaN.
class Rational {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a number is a fraction
  Rational(std::int64_t value = 0) : numerator_(value) {}
  static Rational of(std::int64_t numerator, std::int64_t denominator);
  /// Exact value of a double, a dyadic fraction; undefined if it has too many digits or is not
  /// finite.
  static Rational of(double value);
  static Rational undefined();

  bool is_undefined() const { return denominator_ == 0; }
  bool is(std::int64_t value) const { return denominator_ == 1 && numerator_ == value; }
  bool is_integer() const { return denominator_ == 1; }
  std::optional<std::int64_t> integer() const;
  /// -1, 0 or 1.
  int sign() const { return numerator_ < 0 ? -1 : numerator_ > 0 ? 1 : 0; }

  Rational inverse() const;
  Rational power(std::int64_t exponent) const;
  /// Largest integer that is not above.
  Rational floor() const;
  /// Nearest integer, of two the even one.
  Rational round() const;
  double to_double() const;
  std::string to_string() const;

  /// Decomposition of a positive fraction as root * root * rest, where the integer `rest` is free
  /// of squares of small primes.
  struct Squares;
  std::optional<Squares> squares() const;

  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator*(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a) { return a * Rational(-1); }
  friend Rational operator-(const Rational& a, const Rational& b) { return a + -b; }
  friend Rational operator/(const Rational& a, const Rational& b) { return a * b.inverse(); }
  Rational& operator+=(const Rational& other) { return *this = *this + other; }
  Rational& operator*=(const Rational& other) { return *this = *this * other; }

  /// Total order for sorting; not the numeric order.
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b);
  friend bool operator==(const Rational& a, const Rational& b) { return (a <=> b) == 0; }
  /// Numeric order; false if one side is undefined or the difference overflows.
  bool less_than(const Rational& other) const { return (*this - other).sign() < 0; }

  /// Greatest positive fraction of which both are integer multiples (the gcd of fractions).
  friend Rational common_measure(const Rational& a, const Rational& b);

 private:
  using Wide = __int128;
  static Rational reduced(Wide numerator, Wide denominator);

  Wide numerator_ = 0, denominator_ = 1;
};

struct Rational::Squares {
  Rational root;
  std::int64_t rest = 1;
};

Rational common_measure(const Rational& a, const Rational& b);

}  // namespace tessera
