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

/// What is not defined makes all of it so.
bool is_poisoned(const Sum& sum);
inline Sum poison() {
  return constant(Rational::undefined());
}

/// Adds a factor to a sorted product; exponents of equal bases add up.
void multiply_in(Term& term, const Factor& factor);
/// Powers that came together to whole ones are no longer kept apart.
Sum with_whole_powers(Names& names, Term term);

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
/// Every term without the content.
Sum divided(const Sum& sum, const Content& content);

}  // namespace tessera::algebra
