#include <algorithm>
#include <cmath>

#include "tessera/expr/algebra_internal.h"

namespace tessera::algebra {
namespace {

constexpr std::size_t kMostTerms = 160;
constexpr std::size_t kMostParts = 4000;
constexpr int kMostRounds = 24;

/// Number of terms and factors of a sum, including those nested in the arguments of functions.
std::size_t parts_of(const Sum& sum) {
  std::size_t count = sum.terms.size();
  for (const Term& term : sum.terms)
    for (const Factor& factor : term.factors) {
      ++count;
      for (const Sum& arg : args_of(factor)) count += parts_of(arg);
    }
  return count;
}

/// Whether a sum exceeds the limits within which equality is decided.
bool is_large(const Sum& sum) {
  return sum.terms.size() > kMostTerms || parts_of(sum) > kMostParts;
}

/// Writes hyperbolic functions as exponentials: tanh(x) = (exp(2*x) - 1) / (exp(2*x) + 1).
Sum by_exponentials(Names& names, const Sum& sum) {
  const auto written = [&](const Factor& factor) -> std::optional<Sum> {
    if (factor.kind != Kind::Apply || factor.fn != Fn::Tanh) return std::nullopt;
    const Sum arg = by_exponentials(names, opened(names, args_of(factor)[0]));
    const Sum twice = apply(names, Fn::Exp, {scaled(arg, 2)});
    const Sum over = power(names, add(twice, constant(1)), -1);
    return power(names, add(constant(1), scaled(over, -2)), factor.exponent);
  };
  return changed(names, sum, {.factors = written});
}

/// sin(a + b) = sin(a)*cos(b) + cos(a)*sin(b), cos(a + b) = cos(a)*cos(b) - sin(a)*sin(b).
Sum of_angle(Names& names, Fn fn, const Sum& angle) {
  constexpr std::int64_t kMostTimes = 4;
  const Sum whole = closed(angle);
  if (whole.terms.empty()) return apply(names, fn, {whole});
  Term first = whole.terms[0];
  const auto times = first.coefficient.integer();
  const bool multiple = times && std::abs(*times) > 1 && std::abs(*times) <= kMostTimes;
  if (multiple) first.coefficient = *times > 0 ? 1 : -1;
  const Sum one{{first}}, rest = closed(add(whole, scaled(one, -1)));
  if (rest.terms.empty()) return apply(names, fn, {opened(names, whole)});
  const auto of = [&](Fn f, const Sum& a) { return of_angle(names, f, opened(names, a)); };
  const bool sine = fn == Fn::Sin;
  return add(
      product(names, of(fn, one), of(Fn::Cos, rest)),
      scaled(product(names, of(sine ? Fn::Cos : Fn::Sin, one), of(Fn::Sin, rest)), sine ? 1 : -1));
}

/// Expands trigonometric functions of sums of angles, and cos(x)^2 = 1 - sin(x)^2.
Sum by_angles(Names& names, const Sum& sum) {
  bool any = false;
  const auto written = [&](const Factor& factor) -> std::optional<Sum> {
    if (factor.kind != Kind::Apply || (factor.fn != Fn::Sin && factor.fn != Fn::Cos))
      return std::nullopt;
    any = true;
    return power(names, of_angle(names, factor.fn, opened(names, args_of(factor)[0])),
                 factor.exponent);
  };
  const auto squared = [&](const Factor& factor) -> std::optional<Sum> {
    const auto whole = factor.exponent.integer();
    if (factor.kind != Kind::Apply || factor.fn != Fn::Cos || !whole || *whole < 2 ||
        *whole > kMostFactors)
      return std::nullopt;
    Factor sine = base_of(factor);
    sine.fn = Fn::Sin;
    sine.exponent = 2;
    const Sum square = add(constant(1), scaled(algebra::factor(sine), -1));
    const Sum squares = power(names, square, *whole / 2);
    return *whole % 2 == 0 ? squares : product(names, squares, algebra::factor(base_of(factor)));
  };
  const Sum result = changed(names, sum, {.factors = written});
  return any ? changed(names, result, {.factors = squared}) : sum;
}

/// Floor of an exponent, limited to [-8, 8]: -2 of -3/2.
std::int64_t whole_part(const Rational& exponent) {
  std::int64_t steps = 0;
  Rational rest = exponent;
  while (rest.sign() < 0 && steps > -8) rest += 1, --steps;
  while (!rest.less_than(1) && steps < 8) rest += -1, ++steps;
  return steps;
}

/// Multiplies each term by a non-negative power of a sum; exponents of the sum itself add up.
/// Nothing if the result is large.
std::optional<Sum> times_power(Names& names, const Sum& sum, const Factor& over,
                               std::int64_t exponent) {
  Sum result;
  for (Term term : sum.terms) {
    const auto here = std::ranges::find_if(
        term.factors, [&](const Factor& f) { return compare_bases(f, over) == 0; });
    Rational left = exponent;
    if (here != term.factors.end()) {
      left += here->exponent;
      term.factors.erase(here);
    }
    const std::int64_t whole = whole_part(left);
    Factor rest = over;
    rest.exponent = left - Rational(whole);
    Sum one{{std::move(term)}};
    if (!rest.exponent.is(0)) one = product(names, one, factor(rest));
    if (whole != 0) one = product(names, one, power(names, opened(names, args_of(over)[0]), whole));
    result = add(std::move(result), one);
    if (is_large(result)) return std::nullopt;
  }
  return closed(std::move(result));
}

/// Whether the base of `over`, a denominator in `sum`, is known to be non-zero: by its sign, or
/// because a term without conditions and bound variables divides by it already.
bool is_not_zero(const Sum& sum, const Factor& over) {
  if ((mask_of(args_of(over)[0], {}) & kZero) == 0) return true;
  return std::ranges::any_of(sum.terms, [&](const Term& term) {
    return is_plain(term) && std::ranges::none_of(term.factors, &Factor::truth) &&
           std::ranges::any_of(term.factors, [&](const Factor& f) {
             return f.exponent.sign() < 0 && compare_bases(f, over) == 0;
           });
  });
}

/// Multiplies by the denominators of the terms until there are none. A denominator that contains a
/// bound variable is a different number for each of its values and is left alone.
Sum without_quotients(Names& names, Sum sum) {
  for (int round = 0; round < kMostRounds; ++round) {
    std::optional<Factor> over;
    std::int64_t least = 0;
    for (const Term& term : sum.terms) {
      for (const Factor& f : term.factors) {
        if (over || f.kind != Kind::Power || constant_of(args_of(f)[0]) ||
            whole_part(f.exponent) == 0 ||
            std::ranges::any_of(term.bound, [&](const std::string& s) { return contains(f, s); }))
          continue;
        least = 0;
        for (const Term& other : sum.terms)
          for (const Factor& g : other.factors)
            if (compare_bases(f, g) == 0) least = std::min(least, whole_part(g.exponent));
        if (least == 0 || is_not_zero(sum, f)) over = f;
      }
    }
    if (!over) break;
    auto multiplied = times_power(names, sum, *over, -least);
    if (!multiplied) break;
    sum = std::move(*multiplied);
  }
  return sum;
}

/// Rewrites a sum of multiples of logarithms as a product of powers: zero becomes one.
std::optional<Sum> without_logarithms(Names& names, const Sum& sum) {
  Sum rest, above = constant(1), below = constant(1);
  Rational measure = 0;
  const auto is_logarithm = [](const Term& term) {
    const Factor* f = only_factor(term);
    return f != nullptr && f->kind == Kind::Apply && f->fn == Fn::Log && f->exponent.is(1);
  };
  for (const Term& term : sum.terms)
    if (is_logarithm(term))
      measure = measure.is(0) ? common_measure(term.coefficient, term.coefficient)
                              : common_measure(measure, term.coefficient);
  if (measure.is(0)) return std::nullopt;
  std::int64_t powers = 0;
  for (const Term& term : sum.terms) {
    if (!is_logarithm(term)) {
      rest.terms.push_back(term);
      continue;
    }
    const auto times = (term.coefficient / measure).integer();
    if (!times) return std::nullopt;
    powers += std::abs(*times);
    if (powers > kMostFactors) return std::nullopt;
    Sum& side = *times > 0 ? above : below;
    side = product(names, side,
                   power(names, opened(names, args_of(*only_factor(term))[0]), std::abs(*times)));
  }
  rest = scaled(std::move(rest), -measure.inverse());
  below = product(names, below, apply(names, Fn::Exp, {opened(names, std::move(rest))}));
  return closed(add(std::move(above), scaled(std::move(below), -1)));
}

bool same_range(const Term& a, const Term& b) {
  return a.bound == b.bound && a.guards == b.guards;
}

bool is_zero(Names& names, Sum sum, int depth) {
  if (is_large(sum)) return false;
  sum = closed(std::move(sum));
  if (sum.terms.empty()) return true;
  if (depth == 0 || is_poisoned(sum)) return false;
  sum = without_quotients(names, std::move(sum));
  if (sum.terms.empty()) return true;
  if (is_poisoned(sum)) return false;
  if (const auto product = without_logarithms(names, sum))
    return is_zero(names, *product, depth - 1);
  // Sums over the same range are equal if their summands are.
  const bool ranges = std::ranges::any_of(sum.terms, [](const Term& t) { return !is_plain(t); });
  if (!ranges) return false;
  while (!sum.terms.empty()) {
    const Term first = sum.terms.front();
    Sum inner, rest;
    for (Term& term : sum.terms) {
      if (!same_range(term, first)) {
        rest.terms.push_back(std::move(term));
        continue;
      }
      term.bound.clear();
      term.guards.clear();
      inner.terms.push_back(std::move(term));
    }
    if (!is_zero(names, std::move(inner), depth - 1)) return false;
    sum = std::move(rest);
  }
  return true;
}

}  // namespace

bool are_equal(Names& names, const Sum& a, const Sum& b) {
  const Sum left = closed(a), right = closed(b);
  if (same(left, right)) return true;
  constexpr int kDepth = 3;
  Sum difference = closed(add(left, scaled(right, -1)));
  if (is_large(difference) || is_poisoned(difference)) return false;
  const Sum written = by_exponentials(names, opened(names, std::move(difference)));
  return is_zero(names, by_angles(names, written), kDepth);
}

}  // namespace tessera::algebra
