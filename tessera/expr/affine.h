#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace tessera {

/// base + sum of factor * variable: an integer linear combination of variables that are identified
/// by an ordered type, plus a constant. Terms are in the order of their variables, no factor is 0;
/// so equal forms compare equal.
///
/// Arithmetic is exact: a result with a number beyond 64 bits is none.
template <class Variable>
struct Affine {
  struct Term {
    Variable variable;
    std::int64_t factor;
    bool operator==(const Term&) const = default;
  };
  std::int64_t base = 0;
  std::vector<Term> terms = {};

  static Affine constant(std::int64_t number) { return {.base = number}; }
  static Affine of(Variable variable) { return {.terms = {{std::move(variable), 1}}}; }

  bool is_constant() const { return terms.empty(); }
  /// Of a variable; 0 where there is no term with it.
  std::int64_t factor(const Variable& variable) const {
    const auto it = std::ranges::find(terms, variable, &Term::variable);
    return it == terms.end() ? 0 : it->factor;
  }

  /// this + factor * other.
  std::optional<Affine> plus(const Affine& other, std::int64_t factor = 1) const;
  std::optional<Affine> times(std::int64_t factor) const { return Affine{}.plus(*this, factor); }
  /// Without the terms of variables for which this holds.
  template <class Predicate>
  Affine without(const Predicate& predicate) const {
    Affine rest = *this;
    std::erase_if(rest.terms,
                  [&](const Term& term) { return std::invoke(predicate, term.variable); });
    return rest;
  }

  bool operator==(const Affine&) const = default;
};

template <class Variable>
std::optional<Affine<Variable>> Affine<Variable>::plus(const Affine& other,
                                                       std::int64_t factor) const {
  const auto plus_product = [&](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> {
    std::int64_t product = 0, sum = 0;
    if (__builtin_mul_overflow(b, factor, &product) || __builtin_add_overflow(a, product, &sum))
      return std::nullopt;
    return sum;
  };
  const auto constant = plus_product(base, other.base);
  if (!constant) return std::nullopt;
  Affine sum{.base = *constant};
  auto a = terms.begin(), b = other.terms.begin();
  while (a != terms.end() || b != other.terms.end()) {
    const bool left = b == other.terms.end() || (a != terms.end() && !(b->variable < a->variable));
    const bool right = a == terms.end() || (b != other.terms.end() && !(a->variable < b->variable));
    const auto total = plus_product(left ? a->factor : 0, right ? b->factor : 0);
    if (!total) return std::nullopt;
    if (*total != 0) sum.terms.push_back({left ? a->variable : b->variable, *total});
    if (left) ++a;
    if (right) ++b;
  }
  return sum;
}

}  // namespace tessera
