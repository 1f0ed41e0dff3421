#pragma once

#include "tessera/expr/algebra.h"

/// What the sources of algebra.h share.
namespace tessera::algebra {

using Kind = Factor::Kind;
using Args = std::vector<Sum>;

constexpr std::int64_t kMostFactors = 8;  // of a power that is written out

inline std::shared_ptr<const Args> shared(Args args) {
  return std::make_shared<const Args>(std::move(args));
}
inline const Args& args_of(const Factor& factor) {
  static const Args kNone;
  return factor.args == nullptr ? kNone : *factor.args;
}
/// What a term of Most has in brackets.
inline const Sum& value_of(const Term& piece) {
  return args_of(piece.factors[0])[0];
}
/// With the exponent 1.
inline Factor base_of(Factor factor) {
  factor.exponent = 1;
  return factor;
}
/// Everything but the exponent.
std::strong_ordering compare_bases(const Factor& a, const Factor& b);

inline bool is_plain(const Term& term) {
  return term.bound.empty() && term.guards.empty();
}
inline bool is_number(const Term& term) {
  return is_plain(term) && term.factors.empty();
}
/// The factor, if the term is a number times that; else null.
inline const Factor* only_factor(const Term& term) {
  return is_plain(term) && term.factors.size() == 1 ? term.factors.data() : nullptr;
}
inline const Factor* only_factor(const Sum& sum) {
  return sum.terms.size() == 1 ? only_factor(sum.terms[0]) : nullptr;
}
/// Whether a sum is odd in the sense that its first coefficient is negative: f(-x) is written by
/// f(x) for even and odd functions.
inline bool leads_negative(const Sum& sum) {
  return !sum.terms.empty() && sum.terms.front().coefficient.sign() < 0;
}
inline bool has_even_exponent(const Factor& factor) {
  const auto whole = factor.exponent.integer();
  return whole && *whole % 2 == 0;
}

/// Which signs a number may have, as far as it is plain to see.
using Mask = std::uint8_t;
inline constexpr Mask kNegative = 1, kZero = 2, kPositive = 4;
Mask mask_of(const Sum& sum, const Signs& signs);
bool is_not_negative(const Factor& factor);
/// A term with a factor equal(a, b), with a for b in its other factors; nothing where that changes
/// nothing.
std::optional<Sum> where_equal(Names& names, const Term& term);
/// max(x, -x), to any power.
bool is_absolute(const Factor& factor);

/// What is not defined makes all of it so.
bool is_poisoned(const Sum& sum);
inline Sum poison() {
  return constant(Rational::undefined());
}

/// Adds a factor to a sorted product; exponents of equal bases add up.
void multiply_in(Term& term, const Factor& factor);
/// Powers that came together to whole ones are no longer kept apart.
Sum with_whole_powers(Names& names, Term term);

/// A component of a fold; products of exponentials, of products and of a few numbers come apart.
Sum folded(Names& names, const Factor& fold);

/// What all terms have in common: the measure of the coefficients, and factors.
struct Content {
  Rational measure = 1;
  std::vector<Factor> factors = {};
};
/// Which factors may leave: all; those that are not negative; those whose base is not.
enum class Leaves { All, Positive, PositiveBase };
/// `free` says of which symbols the common factors may not speak.
Content content_of(const std::vector<const Sum*>& sums, Leaves leaves,
                   const std::vector<std::string>& free = {});
/// The exponentials that all terms have in common, to the least of their exponents; a term that
/// has none has the exponent 0.
std::vector<Factor> common_exponentials(const Sum& sum);
/// Every term without the content.
Sum divided(const Sum& sum, const Content& content);

}  // namespace tessera::algebra
