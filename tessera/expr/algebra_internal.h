#pragma once

#include "tessera/expr/algebra.h"

/// Internal helpers shared by the sources of algebra.h.
namespace tessera::algebra {

using Kind = Factor::Kind;
using Args = std::vector<Sum>;

constexpr std::int64_t kMostFactors = 8;  // largest power that is expanded into a product

inline std::shared_ptr<const Args> shared(Args args) {
  return std::make_shared<const Args>(std::move(args));
}
inline const Args& args_of(const Factor& factor) {
  static const Args kNone;
  return factor.args == nullptr ? kNone : *factor.args;
}
/// Operand of a maximum: the sum inside the group `piece`.
inline const Sum& value_of(const Term& piece) {
  return args_of(piece.factors[0])[0];
}
/// Base of a factor: the factor with exponent 1.
inline Factor base_of(Factor factor) {
  factor.exponent = 1;
  return factor;
}
/// Order of two factors without their exponents.
std::strong_ordering compare_bases(const Factor& a, const Factor& b);
/// Order of two terms without their coefficients.
std::strong_ordering compare_bodies(const Term& a, const Term& b);

inline bool is_plain(const Term& term) {
  return term.bound.empty() && term.guards.empty();
}
inline bool is_number(const Term& term) {
  return is_plain(term) && term.factors.empty();
}
/// The only factor of a term that is a number times one factor; else null.
inline const Factor* only_factor(const Term& term) {
  return is_plain(term) && term.factors.size() == 1 ? term.factors.data() : nullptr;
}
inline const Factor* only_factor(const Sum& sum) {
  return sum.terms.size() == 1 ? only_factor(sum.terms[0]) : nullptr;
}
/// Whether the first coefficient is negative: even and odd functions are normalized to arguments
/// for which it is not, f(-x) = ±f(x).
inline bool leads_negative(const Sum& sum) {
  return !sum.terms.empty() && sum.terms.front().coefficient.sign() < 0;
}
inline bool has_even_exponent(const Factor& factor) {
  const auto whole = factor.exponent.integer();
  return whole && *whole % 2 == 0;
}

/// Set of signs that a number may have, by a simple sign analysis.
using Mask = std::uint8_t;
inline constexpr Mask kNegative = 1, kZero = 2, kPositive = 4;
Mask mask_of(const Sum& sum, const Signs& signs);
/// Whether the bounds that are seen for a sum lie in the range of an integer type.
bool lies_in_range(const Sum& sum, DType to);
bool is_not_negative(const Factor& factor);
/// Uses a factor equal(a, b) of a term to replace b by a in its other factors; nothing where that
/// changes nothing.
std::optional<Sum> where_equal(Names& names, const Term& term);
/// Whether this is max(x, -x), an absolute value, to any power.
bool is_absolute(const Factor& factor);

/// Undefined numbers, which make the whole sum undefined.
bool is_poisoned(const Sum& sum);
inline Sum poison() {
  return constant(Rational::undefined());
}

/// Multiplies a sorted product by a factor; exponents of equal bases add up.
void multiply_in(Term& term, const Factor& factor);
/// Expands powers of sums whose exponents have become integers.
Sum with_whole_powers(Names& names, Term term);

/// Maximum of pieces that are closed already, as the argument of a factor is.
Sum most_of_closed(Names& names, const Sum& pieces);

/// Component of a fold, simplified: a fold of one element, and a product of exponentials, of
/// products or of a few elements, is written without the fold.
Sum folded(Names& names, const Factor& fold);

/// Content of sums, as of polynomials: the gcd of the coefficients and the common factors.
struct Content {
  Rational measure = 1;
  std::vector<Factor> factors = {};
};
/// Factors that may be extracted from a maximum or fold: all; those that are not negative; those
/// whose base is not negative.
enum class Extractable { All, Positive, PositiveBase };
/// Content of all sums; the common factors must not contain the symbols in `free`.
Content content_of(const std::vector<const Sum*>& sums, Extractable leaves,
                   const std::vector<std::string>& free = {});
/// Exponentials that all terms have in common, to the least of their exponents; a term without one
/// has the exponent 0.
std::vector<Factor> common_exponentials(const Sum& sum);
/// Divides every term by the content.
Sum divided(const Sum& sum, const Content& content);

}  // namespace tessera::algebra
