#include "tessera/support/rational.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

template <class Wide>
Wide magnitude(Wide value) {
  return value < 0 ? -value : value;
}

template <class Wide>
Wide greatest_common_divisor(Wide a, Wide b) {
  a = magnitude(a);
  b = magnitude(b);
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

template <class Wide>
std::string digits(Wide value) {
  if (value == 0) return "0";
  std::string text;
  for (Wide left = magnitude(value); left != 0; left /= 10)
    text += static_cast<char>('0' + static_cast<int>(left % 10));
  if (value < 0) text += '-';
  std::ranges::reverse(text);
  return text;
}

}  // namespace

Rational Rational::reduced(Wide numerator, Wide denominator) {
  if (denominator == 0) return undefined();
  const Wide divisor = denominator == 1 ? 1 : greatest_common_divisor(numerator, denominator);
  const Wide sign = denominator < 0 ? -1 : 1;
  Rational result;
  result.numerator_ = sign * (divisor == 1 ? numerator : numerator / divisor);
  result.denominator_ = sign * (divisor == 1 ? denominator : denominator / divisor);
  return result;
}

Rational Rational::of(std::int64_t numerator, std::int64_t denominator) {
  return reduced(numerator, denominator);
}

Rational Rational::of(double value) {
  if (!std::isfinite(value)) return undefined();
  int exponent = 0;
  double mantissa = std::frexp(value, &exponent);
  for (int i = 0; i < 53 && mantissa != std::floor(mantissa); ++i, --exponent) mantissa *= 2;
  if (exponent > 70 || exponent < -120) return undefined();
  const Wide scale = Wide{1} << std::abs(exponent);
  const auto whole = static_cast<std::int64_t>(mantissa);
  return exponent >= 0 ? reduced(Wide{whole} * scale, 1) : reduced(whole, scale);
}

Rational Rational::undefined() {
  Rational result;
  result.denominator_ = 0;
  return result;
}

std::optional<std::int64_t> Rational::integer() const {
  const auto value = static_cast<std::int64_t>(numerator_);
  if (denominator_ != 1 || value != numerator_) return std::nullopt;
  return value;
}

Rational Rational::inverse() const {
  return numerator_ == 0 || is_undefined() ? undefined() : reduced(denominator_, numerator_);
}

Rational Rational::power(std::int64_t exponent) const {
  constexpr std::int64_t kMost = 256;  // more would leave 127 bits, but for 0 and 1
  if (is(1) || exponent == 0) return is_undefined() ? undefined() : Rational(1);
  if (exponent > kMost || exponent < -kMost) return undefined();
  const Rational base = exponent < 0 ? inverse() : *this;
  Rational result = 1;
  for (std::int64_t i = 0; i < std::abs(exponent); ++i) result = result * base;
  return result;
}

Rational Rational::floor() const {
  if (is_undefined()) return undefined();
  const Wide quotient = numerator_ / denominator_;
  return reduced(numerator_ % denominator_ < 0 ? quotient - 1 : quotient, 1);
}

Rational Rational::round() const {
  const Rational half = of(1, 2), shifted = *this + half, above = shifted.floor();
  const bool is_odd_tie = shifted.is_integer() && !(above * half).is_integer();
  return is_odd_tie ? above - 1 : above;
}

double Rational::to_double() const {
  return static_cast<double>(numerator_) / static_cast<double>(denominator_);
}

std::string Rational::to_string() const {
  if (is_undefined()) return "undefined";
  return denominator_ == 1 ? digits(numerator_) : digits(numerator_) + "/" + digits(denominator_);
}

std::optional<Rational::Squares> Rational::squares() const {
  if (is_undefined() || numerator_ <= 0) return std::nullopt;
  // sqrt(n/d) = sqrt(n*d)/d
  Wide left = 0;
  if (__builtin_mul_overflow(numerator_, denominator_, &left)) return std::nullopt;
  Wide root = 1, rest = 1;
  for (Wide prime = 2; prime < 1000 && prime * prime <= left; ++prime) {
    while (left % (prime * prime) == 0) {
      left /= prime * prime;
      root *= prime;
    }
    if (left % prime == 0) {
      left /= prime;
      rest *= prime;
    }
  }
  const auto half = static_cast<Wide>(std::llround(std::sqrt(static_cast<double>(left))));
  if (left > 1 && half * half == left) {
    root *= half;
  } else {
    rest *= left;
  }
  const auto narrow = static_cast<std::int64_t>(rest);
  if (narrow != rest) return std::nullopt;
  return Squares{reduced(root, denominator_), narrow};
}

Rational operator+(const Rational& a, const Rational& b) {
  if (a.is_undefined() || b.is_undefined()) return Rational::undefined();
  Rational::Wide left = 0, right = 0, sum = 0, denominator = 0;
  if (__builtin_mul_overflow(a.numerator_, b.denominator_, &left) ||
      __builtin_mul_overflow(b.numerator_, a.denominator_, &right) ||
      __builtin_add_overflow(left, right, &sum) ||
      __builtin_mul_overflow(a.denominator_, b.denominator_, &denominator))
    return Rational::undefined();
  return Rational::reduced(sum, denominator);
}

Rational operator*(const Rational& a, const Rational& b) {
  if (a.is_undefined() || b.is_undefined()) return Rational::undefined();
  // Reduces crosswise before multiplying, to keep the products small.
  const Rational x = Rational::reduced(a.numerator_, b.denominator_);
  const Rational y = Rational::reduced(b.numerator_, a.denominator_);
  Rational::Wide numerator = 0, denominator = 0;
  if (__builtin_mul_overflow(x.numerator_, y.numerator_, &numerator) ||
      __builtin_mul_overflow(x.denominator_, y.denominator_, &denominator))
    return Rational::undefined();
  return Rational::reduced(numerator, denominator);
}

std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  if (a.denominator_ != b.denominator_)
    return a.denominator_ < b.denominator_ ? std::strong_ordering::less
                                           : std::strong_ordering::greater;
  if (a.numerator_ == b.numerator_) return std::strong_ordering::equal;
  return a.numerator_ < b.numerator_ ? std::strong_ordering::less : std::strong_ordering::greater;
}

Rational common_measure(const Rational& a, const Rational& b) {
  if (a.is_undefined() || b.is_undefined()) return Rational::undefined();
  Rational::Wide denominator = 0, left = 0, right = 0;
  const Rational::Wide shared = greatest_common_divisor(a.denominator_, b.denominator_);
  if (__builtin_mul_overflow(a.denominator_ / shared, b.denominator_, &denominator) ||
      __builtin_mul_overflow(a.numerator_, denominator / a.denominator_, &left) ||
      __builtin_mul_overflow(b.numerator_, denominator / b.denominator_, &right))
    return Rational::undefined();
  return Rational::reduced(greatest_common_divisor(left, right), denominator);
}

}  // namespace tessera
