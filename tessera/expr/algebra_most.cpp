#include <algorithm>

#include "tessera/expr/algebra_internal.h"

namespace tessera::algebra {
namespace {

/// A sum as a number and what is left of it.
struct ShiftedSum {
  Rational shift = 0;
  Sum rest = {};
};
ShiftedSum without_number(Sum sum) {
  ShiftedSum result{.rest = std::move(sum)};
  const auto number = std::ranges::find_if(result.rest.terms, is_number);
  if (number == result.rest.terms.end()) return result;
  result.shift = number->coefficient;
  result.rest.terms.erase(number);
  return result;
}

/// Flattens nested maxima, and drops minus infinity.
std::vector<Term> flattened(Names& names, std::vector<Term> groups) {
  std::vector<Term> flat;
  for (Term& piece : groups) {
    const auto [shift, rest] = without_number(value_of(piece));
    const Factor* only = only_factor(rest);
    const Rational scale = only == nullptr ? 0 : rest.terms[0].coefficient;
    if (scale.sign() > 0 && only->kind == Kind::Bottom) continue;
    if (scale.sign() <= 0 || only->kind != Kind::Most || !only->exponent.is(1)) {
      flat.push_back(std::move(piece));
      continue;
    }
    for (Term inner : opened(names, args_of(*only)[0]).terms) {
      inner.bound.insert(inner.bound.end(), piece.bound.begin(), piece.bound.end());
      inner.guards.insert(inner.guards.end(), piece.guards.begin(), piece.guards.end());
      inner.factors = group(add(scaled(value_of(inner), scale), constant(shift))).factors;
      flat.push_back(std::move(inner));
    }
  }
  return flat;
}

/// Merges the constants among the operands into one.
std::vector<Term> with_one_number(std::vector<Term> groups) {
  std::vector<Term> pieces;
  std::optional<Rational> largest;
  for (Term& piece : groups) {
    const auto value = is_plain(piece) ? constant_of(value_of(piece)) : std::nullopt;
    if (!value)
      pieces.push_back(std::move(piece));
    else if (!largest || largest->less_than(*value))
      largest = value;
  }
  if (largest) pieces.push_back(group(constant(*largest)));
  return pieces;
}

/// Absorption: max(x, min(x, y)) = x.
bool is_below_another(const Term& piece, const Sum& pieces) {
  const Factor* only = only_factor(value_of(piece));
  if (only == nullptr || only->kind != Kind::Most || !only->exponent.is(1)) return false;
  const Rational& scale = value_of(piece).terms[0].coefficient;
  if (scale.sign() > 0) return false;
  return std::ranges::any_of(args_of(*only)[0].terms, [&](const Term& inner) {
    if (!is_plain(inner)) return false;
    const Sum bound = scaled(value_of(inner), scale);  // closed, as the operand is
    return std::ranges::any_of(pieces.terms, [&](const Term& other) {
      return &other != &piece && is_plain(other) && same(value_of(other), bound);
    });
  });
}

/// Constant operand and other operand of a maximum of two.
struct ConstantAndOperand {
  Rational bound;
  const Sum* other;
};
std::optional<ConstantAndOperand> bounded(const Sum& pieces) {
  if (pieces.terms.size() != 2 || !is_plain(pieces.terms[0]) || !is_plain(pieces.terms[1]))
    return std::nullopt;
  for (std::size_t i : {0, 1})
    if (const auto number = constant_of(value_of(pieces.terms[i])))
      return ConstantAndOperand{*number, &value_of(pieces.terms[1 - i])};
  return std::nullopt;
}

/// The maximum of a number and another operand that a negative multiple is of, as in a clip.
const Factor* clip_operand(const Sum& sum) {
  const Factor* only = only_factor(sum);
  const bool is_it = only != nullptr && only->kind == Kind::Most && only->exponent.is(1) &&
                     sum.terms[0].coefficient.sign() < 0 && bounded(args_of(*only)[0]).has_value();
  return is_it ? only : nullptr;
}

/// Clips have one form, by max(a, min(b, x)) = min(b, max(a, x)) for numbers a <= b: the one in
/// which the innermost sum begins with a negative coefficient; and by max(n, x) = n + max(0, x -
/// n): the innermost number is 0. Nothing where it is this one already.
std::optional<Sum> clipped(Names& names, const Sum& pieces) {
  const std::optional<ConstantAndOperand> outer = bounded(pieces);
  if (!outer) return std::nullopt;
  auto [shift, operand] = without_number(*outer->other);
  const Factor* only = clip_operand(operand);
  if (only == nullptr) return std::nullopt;
  const auto with_shift = [&](const Rational& by, Sum other) {
    return add(most(names, {group(constant(outer->bound - by)), group(std::move(other))}),
               constant(by));
  };
  if (!shift.is(0)) return with_shift(shift, std::move(operand));

  const Rational scale = operand.terms[0].coefficient;  // -s
  const ConstantAndOperand inner = *bounded(args_of(*only)[0]);
  const auto first = std::ranges::find_if(inner.other->terms,
                                          [](const Term& term) { return !term.factors.empty(); });
  if (first == inner.other->terms.end()) return std::nullopt;
  if (first->coefficient.sign() < 0) {
    if (inner.bound.is(0) || clip_operand(*inner.other) != nullptr) return std::nullopt;
    Sum x = add(opened(names, *inner.other), constant(inner.bound * Rational(-1)));
    return with_shift(inner.bound * scale,
                      scaled(most(names, {group({}), group(std::move(x))}), scale));
  }
  if ((inner.bound * scale).less_than(outer->bound)) return std::nullopt;
  const Sum x = opened(names, scaled(*inner.other, scale));
  Sum larger = most(names, {group(constant(outer->bound)), group(x)});
  Sum least = most(names, {group(constant(inner.bound * scale * Rational(-1))),
                           group(scaled(std::move(larger), -1))});
  return scaled(std::move(least), -1);
}

/// max(n, x, y) = n + max(0, x - n, y - n), for the largest of several clips, or of many elements
/// plus a number. Nothing where there is no such operand, or n is 0.
std::optional<Sum> largest_clip(Names& names, const Sum& pieces) {
  std::optional<Rational> number;
  bool clips = false;
  for (const Term& piece : pieces.terms) {
    const Sum& value = value_of(piece);
    if (is_plain(piece) && constant_of(value)) number = constant_of(value);
    const auto [shift, rest] = without_number(value);
    clips = clips || (pieces.terms.size() > 2 && clip_operand(rest) != nullptr) ||
            (!piece.bound.empty() && !shift.is(0));
  }
  if (!clips || !number || number->is(0)) return std::nullopt;
  std::vector<Term> groups = opened(names, pieces).terms;
  for (Term& piece : groups)
    piece.factors = group(add(value_of(piece), constant(*number * Rational(-1)))).factors;
  return add(most(names, std::move(groups)), constant(*number));
}

/// Terms common to all operands that contain no bound variables.
Sum common_terms(const Sum& pieces, const std::vector<std::string>& bound) {
  Sum common;
  for (const Term& term : value_of(pieces.terms[0]).terms) {
    const bool everywhere =
        std::ranges::none_of(bound, [&](const std::string& s) { return contains(term, s); }) &&
        std::ranges::all_of(pieces.terms, [&](const Term& piece) {
          return std::ranges::any_of(value_of(piece).terms,
                                     [&](const Term& other) { return compare(term, other) == 0; });
        });
    if (everywhere) common.terms.push_back(term);
  }
  return common;
}

/// |x * y| = |x| * |y|.
Sum of_product(Names& names, Factor largest) {
  if (!is_absolute(largest)) return factor(std::move(largest));
  const Sum& value = value_of(args_of(largest)[0].terms[0]);
  if (value.terms.size() != 1 || !is_plain(value.terms[0])) return factor(std::move(largest));
  const std::vector<Factor> factors = value.terms[0].factors;
  if (factors.size() == 1 && factors[0].exponent.is(1)) return factor(std::move(largest));
  Sum result = constant(1);
  for (const Factor& one : factors) {
    const Sum base = factor(base_of(one));
    const bool odd = !has_even_exponent(one);
    result = product(names, result,
                     power(names, odd ? most(names, {group(base), group(scaled(base, -1))}) : base,
                           one.exponent));
  }
  return result;
}

/// Monotonicity: max(exp(a), exp(b)) = exp(max(a, b)), for a maximum that is not empty.
std::optional<Sum> of_exponentials(Names& names, const Sum& pieces) {
  std::vector<Term> exponents;
  for (const Term& piece : pieces.terms) {
    const Sum& value = value_of(piece);
    if (!is_plain(piece) || value.terms.size() != 1 || !is_plain(value.terms[0]) ||
        !value.terms[0].coefficient.is(1))
      return std::nullopt;
    Sum exponent;
    for (const Factor& f : value.terms[0].factors) {
      if (f.kind != Kind::Apply || f.fn != Fn::Exp) return std::nullopt;
      exponent = add(std::move(exponent), scaled(opened(names, args_of(f)[0]), f.exponent));
    }
    exponents.push_back(group(std::move(exponent)));
  }
  return apply(names, Fn::Exp, {most(names, std::move(exponents))});
}

/// Maximum of operands that are closed and distinct.
Sum most_of_distinct(Names& names, Sum pieces);

/// Whether something is divided by a sum, which adding may cancel.
bool has_quotients(const Sum& sum) {
  return std::ranges::any_of(sum.terms, [](const Term& term) {
    return std::ranges::any_of(term.factors, [](const Factor& factor) {
      return factor.kind == Kind::Power && factor.exponent.sign() < 0;
    });
  });
}

/// Whether two closed terms may cancel. The names of bound variables may differ where several
/// variables are used alike.
bool may_cancel(const Term& a, const Term& b) {
  if (is_plain(a) || is_plain(b)) return compare_bodies(a, b) == 0;
  return a.bound.size() == b.bound.size() && a.guards.size() == b.guards.size() &&
         a.factors.size() == b.factors.size();
}

/// Whether a closed sum has a multiple of an element of a float tensor that another one lacks.
bool has_own_element(const Sum& sum, const Sum& other) {
  return std::ranges::any_of(sum.terms, [&](const Term& term) {
    const auto is_element = [](const Factor& factor) {
      return factor.kind == Kind::Read && is_float(factor.to) && factor.exponent.is(1) &&
             !factor.truth;
    };
    return std::ranges::any_of(term.factors, is_element) &&
           std::ranges::none_of(other.terms, [&](const Term& o) { return may_cancel(term, o); });
  });
}

/// Whether the difference of two closed sums is plainly of any sign, as far as is known: as that of
/// most operands.
bool may_differ_either_way(const Sum& a, const Sum& b) {
  return !has_quotients(a) && !has_quotients(b) && (has_own_element(a, b) || has_own_element(b, a));
}

/// Whether an operand is nowhere above another one that is always present.
bool is_lower(const Term& piece, const Sum& pieces) {
  constexpr std::size_t kMostPieces = 6;
  if (pieces.terms.size() > kMostPieces) return false;
  return std::ranges::any_of(pieces.terms, [&](const Term& other) {
    if (&other == &piece || !is_plain(other)) return false;
    if (may_differ_either_way(value_of(other), value_of(piece))) return false;
    const Sum more = closed(add(value_of(other), scaled(value_of(piece), -1)));
    const Mask mask = mask_of(more, {});
    return (mask & kNegative) == 0 && (mask != kZero || !is_plain(piece));
  });
}

}  // namespace

Term group(Sum value) {
  return {.factors = {{.kind = Kind::Group, .args = shared({closed(std::move(value))})}}};
}

Sum most(Names& names, std::vector<Term> groups) {
  for (const Term& piece : groups)
    if (is_poisoned(value_of(piece))) return poison();
  std::vector<Term> flat = flattened(names, std::move(groups));
  if (flat.empty()) return factor({.kind = Kind::Bottom});
  // Equal operands count once.
  return most_of_distinct(names, closed({with_one_number(std::move(flat))}));
}

Sum most_of_closed(Names& names, const Sum& pieces) {
  const auto is_kept = [](const Term& piece) {
    const ShiftedSum value = without_number(value_of(piece));
    const Factor* only = only_factor(value.rest);
    return !is_poisoned(value_of(piece)) &&
           (only == nullptr || (only->kind != Kind::Most && only->kind != Kind::Bottom));
  };
  const auto numbers = std::ranges::count_if(pieces.terms, [](const Term& piece) {
    return is_plain(piece) && constant_of(value_of(piece)).has_value();
  });
  if (pieces.terms.empty() || numbers > 1 || !std::ranges::all_of(pieces.terms, is_kept))
    return most(names, opened(names, pieces).terms);
  // The names that opening the pieces would take: certificates count on the next one.
  for (const Term& piece : pieces.terms)
    for (std::size_t i = 0; i < piece.bound.size(); ++i) names.fresh();
  return most_of_distinct(names, pieces);
}

namespace {

Sum most_of_distinct(Names& names, Sum pieces) {
  for (Term& piece : pieces.terms) piece.coefficient = 1;
  if (pieces.terms.size() == 1 && is_plain(pieces.terms[0]))
    return opened(names, value_of(pieces.terms[0]));

  for (std::size_t i = 0; i < pieces.terms.size(); ++i) {
    if (!is_below_another(pieces.terms[i], pieces) && !is_lower(pieces.terms[i], pieces)) continue;
    pieces.terms.erase(pieces.terms.begin() + static_cast<std::ptrdiff_t>(i));
    return most(names, opened(names, std::move(pieces)).terms);
  }

  if (auto clip = clipped(names, pieces)) return *std::move(clip);
  if (auto clip = largest_clip(names, pieces)) return *std::move(clip);
  if (auto power = of_exponentials(names, pieces)) return *std::move(power);

  // Extracts common terms and factors: max(a + c, b + c) = c + max(a, b), and max(s*a, s*b) =
  // s*max(a, b) for s > 0.
  std::vector<std::string> bound;
  for (const Term& piece : pieces.terms)
    bound.insert(bound.end(), piece.bound.begin(), piece.bound.end());
  if (const Sum outer = common_terms(pieces, bound); !outer.terms.empty()) {
    for (Term& piece : pieces.terms)
      piece.factors = group(add(value_of(piece), scaled(outer, -1))).factors;
    return add(most(names, opened(names, std::move(pieces)).terms), opened(names, outer));
  }
  // A maximum of zeros is not zero where its ranges may be empty.
  std::vector<const Sum*> values;
  for (const Term& piece : pieces.terms) values.push_back(&value_of(piece));
  const Content content = content_of(values, Extractable::Positive, bound);
  if (!content.measure.is(1) || !content.factors.empty()) {
    for (Term& piece : pieces.terms)
      piece.factors = group(divided(value_of(piece), content)).factors;
    return product(names, {{{.coefficient = content.measure, .factors = content.factors}}},
                   most(names, opened(names, closed(std::move(pieces))).terms));
  }
  return of_product(names, {.kind = Kind::Most, .args = shared({std::move(pieces)})});
}

}  // namespace

}  // namespace tessera::algebra
