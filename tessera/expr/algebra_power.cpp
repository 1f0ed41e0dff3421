#include <algorithm>

#include "tessera/expr/algebra_internal.h"

namespace tessera::algebra {
namespace {

Factor power_factor(Sum base, const Rational& exponent) {
  return {.kind = Kind::Power, .args = shared({std::move(base)}), .exponent = exponent};
}

Sum prime_root(std::int64_t value) {
  Term term;
  const auto root_of = [&](std::int64_t prime) {
    term.factors.push_back(power_factor(constant(prime), Rational::of(1, 2)));
  };
  for (std::int64_t prime = 2; prime < 1000 && prime <= value; ++prime) {
    if (value % prime != 0) continue;
    value /= prime;
    root_of(prime);
  }
  if (value > 1) root_of(value);
  return sum_of(std::move(term));
}

/// Power of a number as a product of roots; nothing where it has no such form.
std::optional<Sum> number_power(Names& names, const Rational& value, const Rational& exponent) {
  if (const auto whole = exponent.integer()) return constant(value.power(*whole));
  const auto twice = (exponent * 2).integer();
  const auto squares = value.squares();
  if (!twice || !squares) return std::nullopt;
  Sum result = scaled(prime_root(squares->rest), squares->root);
  if (*twice == 1) return result;
  const Rational whole = Rational(*twice - 1) * Rational::of(1, 2);
  return product(names, result, constant(value.power(whole.integer().value_or(0))));
}

Sum power_of_term(Names& names, const Term& term, const Rational& exponent) {
  const auto whole = exponent.integer();
  Term taken, kept;
  Sum roots = constant(1);
  for (Factor f : term.factors) {
    const bool out = whole || is_not_negative(has_even_exponent(f) ? base_of(f) : f);
    if (out) {
      f.exponent *= exponent;
      multiply_in(taken, f);
    } else if (has_even_exponent(f)) {
      // The root of a square is the absolute value.
      const Sum base = factor(base_of(f));
      roots = product(
          names, roots,
          power(names, most(names, {group(base), group(scaled(base, -1))}), f.exponent * exponent));
    } else {
      kept.factors.push_back(f);
    }
  }
  Sum result = product(names, {{taken}}, roots);
  // A negative coefficient stays under the root with its factors.
  const bool apart = whole || term.coefficient.sign() > 0;
  const auto root = apart ? number_power(names, term.coefficient, exponent) : std::optional<Sum>();
  if (root)
    result = product(names, result, *root);
  else
    kept.coefficient = term.coefficient;
  if (kept.factors.empty() && kept.coefficient.is(1)) {
    Sum made;
    for (Term& t : result.terms) made = add(std::move(made), with_whole_powers(names, t));
    return made;
  }
  return product(names, result, factor(power_factor(closed({{kept}}), exponent)));
}

}  // namespace

Sum with_whole_powers(Names& names, Term term) {
  const auto is_power = [](const Factor& factor) {
    return factor.kind == Kind::Power || (factor.kind == Kind::Most && !factor.exponent.is(1));
  };
  if (std::ranges::none_of(term.factors, is_power)) return sum_of(std::move(term));
  Sum rest = constant(1);
  bool changed = false;
  for (std::size_t i = 0; i < term.factors.size();) {
    const Factor& factor = term.factors[i];
    const auto whole = factor.exponent.integer();
    const std::optional<Rational> base =
        factor.kind == Kind::Power ? constant_of(args_of(factor)[0]) : std::nullopt;
    if (base) {
      // p^(k + f) = p^k * p^f with 0 <= f < 1
      std::int64_t steps = 0;
      Rational fraction = factor.exponent;
      while (fraction.sign() < 0 && steps > -64) fraction += 1, --steps;
      while (!fraction.less_than(1) && steps < 64) fraction += -1, ++steps;
      term.coefficient *= base->power(steps);
      if (fraction.is(0)) {
        term.factors.erase(term.factors.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      term.factors[i].exponent = fraction;
    } else if (whole && *whole % 2 == 0 && is_absolute(factor)) {
      const Sum value = opened(names, value_of(args_of(factor)[0].terms[0]));
      rest = product(names, rest, power(names, value, *whole));
      changed = true;
      term.factors.erase(term.factors.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    } else if (factor.kind == Kind::Power && whole && *whole > 0 && *whole <= kMostFactors) {
      const Sum grown = power(names, opened(names, args_of(factor)[0]), *whole);
      rest = product(names, rest, grown);
      changed = true;
      term.factors.erase(term.factors.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    ++i;
  }
  Sum result = sum_of(std::move(term));
  return changed ? product(names, result, rest) : result;
}

Content content_of(const std::vector<const Sum*>& sums, Extractable leaves,
                   const std::vector<std::string>& free) {
  std::vector<const Term*> terms;
  for (const Sum* sum : sums)
    for (const Term& term : sum->terms) terms.push_back(&term);
  if (terms.empty()) return {};
  Content content{.measure = 0};
  for (const Term* term : terms)
    content.measure = content.measure.is(0) ? common_measure(term->coefficient, term->coefficient)
                                            : common_measure(content.measure, term->coefficient);
  const auto is_free = [](const Factor& factor, const std::vector<std::string>& of) {
    return std::ranges::none_of(of, [&](const std::string& s) { return contains(factor, s); });
  };
  for (const Factor& candidate : terms[0]->factors) {
    if (candidate.kind == Kind::Bottom || candidate.kind == Kind::Group) continue;
    Factor common = candidate;
    const bool everywhere = std::ranges::all_of(terms, [&](const Term* term) {
      const auto here = std::ranges::find_if(
          term->factors, [&](const Factor& f) { return compare_bases(f, candidate) == 0; });
      if (here == term->factors.end() || !is_free(candidate, term->bound)) return false;
      if (here->exponent.less_than(common.exponent)) common.exponent = here->exponent;
      return here->exponent.sign() == candidate.exponent.sign();
    });
    if (everywhere && is_free(candidate, free) &&
        (leaves == Extractable::All ||
         is_not_negative(leaves == Extractable::PositiveBase ? base_of(common) : common)))
      content.factors.push_back(common);
  }
  return content;
}

std::vector<Factor> common_exponentials(const Sum& sum) {
  const auto is_exponential = [](const Factor& f) {
    return f.kind == Kind::Apply && f.fn == Fn::Exp;
  };
  // Without negative exponents, a factor common to all terms is a factor of the first term.
  const bool all_positive = std::ranges::none_of(sum.terms, [&](const Term& term) {
    return std::ranges::any_of(
        term.factors, [&](const Factor& f) { return is_exponential(f) && f.exponent.sign() < 0; });
  });
  std::vector<Factor> common;
  for (const Term& term : sum.terms) {
    if (all_positive && &term != sum.terms.data()) break;
    for (const Factor& candidate : term.factors) {
      if (!is_exponential(candidate) || std::ranges::any_of(common, [&](const Factor& f) {
            return compare_bases(f, candidate) == 0;
          }))
        continue;
      Factor least = candidate;
      for (const Term& other : sum.terms) {
        const auto here = std::ranges::find_if(
            other.factors, [&](const Factor& f) { return compare_bases(f, candidate) == 0; });
        const Rational exponent = here == other.factors.end() ? Rational(0) : here->exponent;
        if (exponent.less_than(least.exponent)) least.exponent = exponent;
      }
      const bool free = std::ranges::none_of(sum.terms, [&](const Term& other) {
        return std::ranges::any_of(other.bound,
                                   [&](const std::string& s) { return contains(least, s); });
      });
      if (free) common.push_back(std::move(least));
    }
  }
  std::erase_if(common, [](const Factor& f) { return f.exponent.is(0); });
  return common;
}

Sum divided(const Sum& sum, const Content& content) {
  Sum result = scaled(sum, content.measure.inverse());
  for (Factor factor : content.factors) {
    factor.exponent = -factor.exponent;
    for (Term& term : result.terms) multiply_in(term, factor);
  }
  return result;
}

Sum power(Names& names, const Sum& base, const Rational& exponent) {
  if (exponent.is(1)) return base;
  if (is_poisoned(base) || exponent.is_undefined()) return poison();
  const auto whole = exponent.integer();
  if (whole && *whole >= 0 && *whole <= kMostFactors) {
    Sum result = constant(1);
    for (std::int64_t i = 0; i < *whole; ++i) result = product(names, result, base);
    return result;
  }
  Sum inner = closed(base);
  if (inner.terms.empty()) return exponent.sign() > 0 ? Sum{} : poison();  // 1/0
  if (inner.terms.size() == 1 && is_plain(inner.terms[0]))
    return power_of_term(names, inner.terms[0], exponent);
  Content content = content_of({&inner}, whole ? Extractable::All : Extractable::PositiveBase);
  if (whole && leads_negative(inner)) content.measure *= -1;
  const auto outer = number_power(names, content.measure, exponent);
  if (!outer) content.measure = 1;
  inner = divided(inner, content);
  const Content exponentials{.factors = common_exponentials(inner)};
  Term common;
  for (const auto& factors : {content.factors, exponentials.factors})
    for (Factor f : factors) {
      f.exponent *= exponent;
      multiply_in(common, f);
    }
  Sum result = product(names, outer.value_or(constant(1)), with_whole_powers(names, common));
  inner = closed(divided(inner, exponentials));
  return product(names, result, factor(power_factor(std::move(inner), exponent)));
}

}  // namespace tessera::algebra
