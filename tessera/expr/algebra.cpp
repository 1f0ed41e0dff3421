#include "tessera/expr/algebra.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "tessera/expr/algebra_internal.h"

namespace tessera::algebra {
namespace {

Sum product_of(Names& names, const Term& a, const Term& b) {
  Term result = a;
  result.coefficient *= b.coefficient;
  result.bound.insert(result.bound.end(), b.bound.begin(), b.bound.end());
  for (const Dim& guard : b.guards)
    if (std::ranges::find(result.guards, guard) == result.guards.end())
      result.guards.push_back(guard);
  for (const Factor& factor : b.factors) multiply_in(result, factor);
  const bool equality =
      result.factors.size() > 1 && std::ranges::any_of(result.factors, [](const Factor& f) {
        return f.kind == Kind::Apply && f.fn == Fn::Equal;
      });
  if (equality && result.bound.empty())
    if (auto other = where_equal(names, result)) return *std::move(other);
  return with_whole_powers(names, std::move(result));
}

}  // namespace

std::strong_ordering compare_bases(const Factor& a, const Factor& b) {
  const auto head = [](const Factor& f) {
    return std::tie(f.kind, f.name, f.fn, f.to, f.component, f.truth, f.at);
  };
  if (const auto order = head(a) <=> head(b); order != 0) return order;
  if (a.args == b.args) return std::strong_ordering::equal;
  return std::lexicographical_compare_three_way(
      args_of(a).begin(), args_of(a).end(), args_of(b).begin(), args_of(b).end(),
      [](const Sum& x, const Sum& y) { return compare(x, y); });
}

std::strong_ordering compare_bodies(const Term& a, const Term& b) {
  if (const auto order = a.bound <=> b.bound; order != 0) return order;
  if (const auto order = a.guards <=> b.guards; order != 0) return order;
  return std::lexicographical_compare_three_way(
      a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(),
      [](const Factor& x, const Factor& y) { return compare(x, y); });
}

std::strong_ordering compare(const Factor& a, const Factor& b) {
  if (const auto order = compare_bases(a, b); order != 0) return order;
  return a.exponent <=> b.exponent;
}

std::strong_ordering compare(const Term& a, const Term& b) {
  if (const auto order = compare_bodies(a, b); order != 0) return order;
  return a.coefficient <=> b.coefficient;
}

std::strong_ordering compare(const Sum& a, const Sum& b) {
  return std::lexicographical_compare_three_way(
      a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end(),
      [](const Term& x, const Term& y) { return compare(x, y); });
}

std::string Names::fresh() {
  return fmt::format("%{}", ++next_);
}

Sum sum_of(Term term) {
  Sum sum;
  sum.terms.push_back(std::move(term));  // a list of initializers would copy it
  return sum;
}

Sum constant(const Rational& value) {
  if (value.is(0)) return {};
  return sum_of({.coefficient = value});
}

Sum number(const Dim& dim) {
  Sum sum;
  for (const Dim::Part& part : dim.parts()) {
    Term term{.coefficient = part.coefficient};
    for (Dim atom : part.product.factors())
      multiply_in(term, {.kind = Kind::Number, .at = {std::move(atom)}});
    sum.terms.push_back(std::move(term));
  }
  return sum;
}

Sum factor(Factor factor) {
  Term term;
  term.factors.push_back(std::move(factor));
  return sum_of(std::move(term));
}

Sum indicator(std::vector<Dim> guards) {
  return sum_of({.guards = std::move(guards)});
}

std::optional<Rational> constant_of(const Sum& sum) {
  if (sum.terms.empty()) return 0;
  if (sum.terms.size() != 1 || !is_number(sum.terms[0])) return std::nullopt;
  return sum.terms[0].coefficient;
}

bool contains(const Factor& factor, std::string_view symbol) {
  return std::ranges::any_of(factor.at, [&](const Dim& dim) { return dim.contains(symbol); }) ||
         std::ranges::any_of(args_of(factor), [&](const Sum& sum) {
           return std::ranges::any_of(sum.terms,
                                      [&](const Term& term) { return contains(term, symbol); });
         });
}

bool contains(const Term& term, std::string_view symbol) {
  return std::ranges::any_of(term.guards, [&](const Dim& dim) { return dim.contains(symbol); }) ||
         std::ranges::any_of(term.factors, [&](const Factor& f) { return contains(f, symbol); });
}

bool is_defined(const Sum& sum) {
  const auto defined = [](const Dim& dim) { return !dim.is_undefined(); };
  return std::ranges::all_of(sum.terms, [&](const Term& term) {
    return !term.coefficient.is_undefined() && std::ranges::all_of(term.guards, defined) &&
           std::ranges::all_of(term.factors, [&](const Factor& f) {
             return !f.exponent.is_undefined() && std::ranges::all_of(f.at, defined) &&
                    std::ranges::all_of(args_of(f), is_defined);
           });
  });
}

bool is_poisoned(const Sum& sum) {
  return std::ranges::any_of(sum.terms,
                             [](const Term& term) { return term.coefficient.is_undefined(); });
}

Sum add(Sum a, const Sum& b) {
  a.terms.insert(a.terms.end(), b.terms.begin(), b.terms.end());
  return a;
}

Sum add(Sum a, Sum&& b) {
  if (a.terms.empty()) return std::move(b);
  std::ranges::move(b.terms, std::back_inserter(a.terms));
  return a;
}

Sum scaled(Sum sum, const Rational& by) {
  if (by.is(0)) return {};
  for (Term& term : sum.terms) term.coefficient *= by;
  return sum;
}

void multiply_in(Term& term, const Factor& factor) {
  if (factor.kind == Kind::Group) {
    term.factors.push_back(factor);  // components of a fold, equal or not
    return;
  }
  for (auto here = term.factors.begin(); here != term.factors.end(); ++here) {
    if (compare_bases(*here, factor) != 0) continue;
    here->exponent += factor.exponent;
    if (here->truth && here->exponent.sign() > 0) here->exponent = 1;
    if (here->exponent.is(0)) term.factors.erase(here);
    return;
  }
  term.factors.push_back(factor);
}

std::size_t size_of(const Sum& sum, std::size_t limit) {
  std::size_t size = 0;
  for (const Term& term : sum.terms)
    for (const Factor& factor : term.factors) {
      ++size;
      for (const Sum& arg : args_of(factor))
        if (size <= limit) size += size_of(arg, limit - size);
    }
  return size;
}

namespace {

/// Whether a product that is written out takes too much time and memory.
bool is_too_large_product(const Sum& a, const Sum& b) {
  constexpr std::size_t kFewTerms = 64, kMostTerms = 20'000, kMostParts = 200'000;
  const std::size_t count = a.terms.size() * b.terms.size();
  if (count <= kFewTerms || b.terms.empty()) return false;
  return count / b.terms.size() != a.terms.size() || count > kMostTerms ||
         b.terms.size() * size_of(a, kMostParts) + a.terms.size() * size_of(b, kMostParts) >
             kMostParts;
}

}  // namespace

Sum product(Names& names, const Sum& a, const Sum& b) {
  if (is_too_large_product(a, b)) return poison();
  Sum result;
  for (const Term& x : a.terms) {
    for (const Term& y : b.terms) {
      // Renames the bound variables of one side: both may be copies of one term. (y may contain
      // variables that x binds: a range and what runs over it.)
      const bool clashes = std::ranges::any_of(y.bound, [&](const std::string& name) {
        return std::ranges::find(x.bound, name) != x.bound.end() || contains(x, name);
      });
      result = add(std::move(result),
                   product_of(names, x, clashes ? opened(names, sum_of(y)).terms[0] : y));
    }
  }
  return result;
}

Sum tidied(Sum sum) {
  for (Term& term : sum.terms)
    std::erase_if(term.guards, [](const Dim& guard) { return guard.least().value_or(-1) >= 0; });
  std::erase_if(sum.terms, [](const Term& term) {
    return std::ranges::any_of(term.guards,
                               [](const Dim& guard) { return guard.constant().value_or(0) < 0; });
  });
  return sum;
}

}  // namespace tessera::algebra
