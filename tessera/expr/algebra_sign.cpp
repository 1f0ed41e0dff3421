#include <algorithm>

#include "tessera/expr/algebra_internal.h"

namespace tessera::algebra {
namespace {

constexpr Mask kAny = kNegative | kZero | kPositive;
constexpr Mask kNotNegative = kZero | kPositive;
constexpr std::size_t kMostLooked = 24;  // terms of a sum whose sign is looked for

Mask negated(Mask mask) {
  return static_cast<Mask>((mask & kZero) | ((mask & kNegative) != 0 ? kPositive : 0) |
                           ((mask & kPositive) != 0 ? kNegative : 0));
}

Mask sign_of_product(Mask a, Mask b) {
  Mask result = ((a | b) & kZero) != 0 ? kZero : 0;
  if ((a & kPositive) != 0) result |= b & (kNegative | kPositive);
  if ((a & kNegative) != 0) result |= negated(b) & (kNegative | kPositive);
  return result;
}

Mask sign_of_sum(Mask a, Mask b) {
  if (a == kZero) return b;
  if (b == kZero) return a;
  const Mask both = a | b;
  if ((both & kNegative) == 0) return ((a & b) & kZero) != 0 ? both : kPositive;
  if ((both & kPositive) == 0) return ((a & b) & kZero) != 0 ? both : kNegative;
  return kAny;
}

Mask of_number(const Rational& value) {
  return value.is_undefined() ? kAny
         : value.sign() < 0   ? kNegative
         : value.sign() > 0   ? kPositive
                              : kZero;
}

/// Sign assumptions, and whether to decompose sums by them.
struct Context {
  const Signs& signs;
  int depth = 2;  // how many of what is known are added up
};
Mask mask_in(const Sum& sum, const Context& context);

/// Possible signs of a factor's base; `factor` may have any exponent.
Mask base_mask(const Factor& factor, const Context& context) {
  if (factor.truth) return kNotNegative;
  switch (factor.kind) {
    case Kind::Number: {
      const std::int64_t least = factor.at[0].least().value_or(-1);
      return least > 0 ? kPositive : least == 0 ? kNotNegative : kAny;
    }
    case Kind::Apply: return factor.fn == Fn::Exp ? kPositive : kAny;
    case Kind::Read:
    case Kind::Cast:
      return !is_float(factor.to) && !is_signed(factor.to) && factor.to != DType::String
                 ? kNotNegative
                 : kAny;
    case Kind::Power: return mask_in(args_of(factor)[0], context);
    case Kind::Most: {
      Mask mask = kAny;
      const Sum& pieces = args_of(factor)[0];
      for (const Term& piece : pieces.terms) {
        if (!is_plain(piece)) continue;
        const Mask own = mask_in(value_of(piece), context);
        // The maximum is at least as large as each operand.
        if ((own & kNegative) == 0) mask &= own == kPositive ? kPositive : kNotNegative;
      }
      return is_absolute(factor) ? static_cast<Mask>(mask & kNotNegative) : mask;
    }
    default: return kAny;
  }
}

Mask mask_of(const Factor& factor, const Context& context) {
  Mask base = base_mask(factor, context);
  for (const Sign& sign : context.signs)
    if (const Factor* known = only_factor(sign.of);
        known != nullptr && compare_bases(*known, factor) == 0 && known->exponent.is(1)) {
      const int times = sign.of.terms[0].coefficient.sign() * sign.sign;
      base &= times < 0 ? kNegative : times > 0 ? kPositive : kZero;
    }
  if (factor.exponent.is(1)) return base;
  const auto whole = factor.exponent.integer();
  if (!whole) base &= kNotNegative;  // there is a root of it
  // A denominator is not zero.
  if (factor.exponent.sign() < 0) base &= kNegative | kPositive;
  if (whole && *whole % 2 == 0 && (base & kNegative) != 0)
    base = static_cast<Mask>((base & kZero) | kPositive);
  return base;
}

Mask mask_of(const Term& term, const Context& context) {
  Mask mask = of_number(term.coefficient);
  for (const Factor& factor : term.factors) mask = sign_of_product(mask, mask_of(factor, context));
  // A sum over a range, which may be empty.
  return is_plain(term) ? mask : static_cast<Mask>(mask | kZero);
}

Mask by_terms(const Sum& sum, const Context& context) {
  Mask mask = kZero;
  for (const Term& term : sum.terms) {
    mask = sign_of_sum(mask, mask_of(term, context));
    if (mask == kAny) break;
  }
  return mask;
}

/// c*exp(a) - c*exp(b) has the sign of c*(a - b).
Mask of_exponentials(const Sum& sum, const Context& context) {
  if (sum.terms.size() != 2 || !(sum.terms[0].coefficient + sum.terms[1].coefficient).is(0))
    return kAny;
  Sum difference;
  for (const Term& term : sum.terms) {
    if (!is_plain(term)) return kAny;
    for (const Factor& f : term.factors) {
      if (f.kind != Kind::Apply || f.fn != Fn::Exp) return kAny;
      difference = add(std::move(difference), scaled(args_of(f)[0], term.coefficient * f.exponent));
    }
  }
  return mask_in(closed(std::move(difference)), context);
}

/// Bounds of a sum of numbers, of elements of small integer types and of maxima; nothing where none
/// is seen.
struct Bounds {
  std::optional<Rational> least = {}, most = {};
};
Bounds bounds_of(const Sum& sum);

/// A maximum is at least each operand that is always there, and at most the largest of all.
Bounds bounds_of_maximum(const Sum& pieces) {
  Bounds bounds;
  bool is_bounded = true;
  for (const Term& piece : pieces.terms) {
    const Bounds own = bounds_of(value_of(piece));
    if (is_plain(piece) && own.least && (!bounds.least || bounds.least->less_than(*own.least)))
      bounds.least = own.least;
    is_bounded = is_bounded && own.most.has_value();
    if (is_bounded && (!bounds.most || bounds.most->less_than(*own.most))) bounds.most = own.most;
  }
  if (!is_bounded) bounds.most.reset();
  return bounds;
}

Bounds bounds_of(const Factor& factor) {
  if (!factor.exponent.is(1)) return {};
  if (factor.truth) return {0, 1};
  const bool typed = (factor.kind == Kind::Read || factor.kind == Kind::Cast) &&
                     !is_float(factor.to) && factor.to != DType::String &&
                     byte_width(factor.to) <= 4;
  if (typed) {
    const auto [least, most] = integer_range(factor.to);
    return {least, most};
  }
  if (factor.kind == Kind::Apply && factor.fn == Fn::Mod) {
    const auto divisor = constant_of(args_of(factor)[1]);
    if (divisor && divisor->sign() > 0) return {0, *divisor};
  }
  if (factor.kind == Kind::Most) return bounds_of_maximum(args_of(factor)[0]);
  return {};
}

Bounds bounds_of(const Sum& sum) {
  Bounds bounds{0, 0};
  for (const Term& term : sum.terms) {
    const Factor* only = only_factor(term);
    Bounds own{1, 1};
    if (only != nullptr)
      own = bounds_of(*only);
    else if (!is_number(term))
      return {};
    if (term.coefficient.sign() < 0) std::swap(own.least, own.most);
    const auto add_to = [&](std::optional<Rational>& bound, const std::optional<Rational>& more) {
      if (bound && more)
        *bound += term.coefficient * *more;
      else
        bound.reset();
    };
    add_to(bounds.least, own.least);
    add_to(bounds.most, own.most);
  }
  return bounds;
}

/// First term that is not a constant, if any.
const Term* first_of(const Sum& sum) {
  const auto here =
      std::ranges::find_if(sum.terms, [](const Term& term) { return !is_number(term); });
  return here == sum.terms.end() ? nullptr : &*here;
}

Mask mask_in(const Sum& sum, const Context& context) {
  if (sum.terms.size() > kMostLooked) return kAny;
  Mask mask = static_cast<Mask>(by_terms(sum, context) & of_exponentials(sum, context));
  const Bounds bounds = bounds_of(sum);
  if (bounds.least && bounds.least->sign() >= 0)
    mask &= bounds.least->sign() > 0 ? kPositive : kNotNegative;
  if (bounds.most && bounds.most->sign() <= 0)
    mask &= bounds.most->sign() < 0 ? kNegative : static_cast<Mask>(kNegative | kZero);
  if (context.depth == 0 || context.signs.empty() || mask == kZero || (mask & (mask - 1)) == 0)
    return mask;
  // The sum is a positive multiple of an assumption plus something of the same sign.
  for (const Sign& sign : context.signs) {
    const Term* theirs = first_of(sign.of);
    if (theirs == nullptr) continue;
    for (const Term& own : sum.terms) {
      Term scaled_term = own;
      scaled_term.coefficient = theirs->coefficient;
      if (compare(scaled_term, *theirs) != 0) continue;
      const Rational ratio = own.coefficient / theirs->coefficient;
      const Sum rest = closed(add(sum, scaled(sign.of, -ratio)));
      const int times = ratio.sign() * sign.sign;
      const Mask part = times < 0 ? kNegative : times > 0 ? kPositive : kZero;
      mask &= sign_of_sum(part, mask_in(rest, {context.signs, context.depth - 1}));
      break;
    }
  }
  return mask;
}

}  // namespace

namespace {

/// Whether two closed sums add up to zero: signs do not change how a sum is closed.
bool is_negative_of(const Sum& a, const Sum& b) {
  return a.terms.size() == b.terms.size() &&
         std::ranges::equal(a.terms, b.terms, [](const Term& x, const Term& y) {
           return (x.coefficient + y.coefficient).is(0) && compare_bodies(x, y) == 0;
         });
}

}  // namespace

bool is_absolute(const Factor& factor) {
  if (factor.kind != Kind::Most) return false;
  const Sum& pieces = args_of(factor)[0];
  return pieces.terms.size() == 2 && is_plain(pieces.terms[0]) && is_plain(pieces.terms[1]) &&
         is_negative_of(value_of(pieces.terms[0]), value_of(pieces.terms[1]));
}

bool is_not_negative(const Factor& factor) {
  return (mask_of(factor, Context{Signs{}}) & kNegative) == 0;
}

Mask mask_of(const Sum& sum, const Signs& signs) {
  return mask_in(sum, {signs});
}

bool lies_in_range(const Sum& sum, DType to) {
  if (is_float(to) || to == DType::String || to == DType::Bool || byte_width(to) > 4) return false;
  const Bounds bounds = bounds_of(sum);
  if (!bounds.least || !bounds.most) return false;
  const auto [least, most] = integer_range(to);
  const Rational below = *bounds.least - least, above = Rational(most) - *bounds.most;
  return !below.is_undefined() && below.sign() >= 0 && !above.is_undefined() && above.sign() >= 0;
}

namespace {

/// Equation solved for a factor, from a sum that is assumed to be zero.
struct SolvedFactor {
  Factor factor;
  Sum value;
};
std::optional<SolvedFactor> solved(const Sum& zero) {
  for (const Term& term : zero.terms) {
    const Factor* factor = only_factor(term);
    if (factor == nullptr || !factor->exponent.is(1) || factor->kind == Kind::Number ||
        factor->kind == Kind::Bottom)
      continue;
    const auto speaks = [&](const Term& other) {
      return std::ranges::any_of(other.factors, [&](const Factor& f) {
        return &f != factor && (compare_bases(f, *factor) == 0 || f.args != nullptr);
      });
    };
    if (std::ranges::any_of(zero.terms, speaks)) continue;
    Sum rest = zero;
    std::erase_if(rest.terms, [&](const Term& other) { return compare(other, term) == 0; });
    return SolvedFactor{*factor, closed(scaled(std::move(rest), -term.coefficient.inverse()))};
  }
  return std::nullopt;
}

/// Maximum without operands that are known to be below another.
std::optional<Sum> without_lower(Names& names, const Factor& factor, const Signs& signs) {
  const Sum& pieces = args_of(factor)[0];
  if (pieces.terms.size() > 8) return std::nullopt;
  std::vector<Term> kept;
  for (std::size_t i = 0; i < pieces.terms.size(); ++i) {
    const Term& piece = pieces.terms[i];
    const bool below = std::ranges::any_of(pieces.terms, [&](const Term& other) {
      if (&other == &piece || !is_plain(other)) return false;
      const Sum more = closed(add(value_of(other), scaled(value_of(piece), -1)));
      const Mask mask = mask_of(more, signs);
      // Of two equal operands the first one stays.
      return (mask & kNegative) == 0 && (mask != kZero || !is_plain(piece) || &other < &piece);
    });
    if (!below) kept.push_back(piece);
  }
  if (kept.size() == pieces.terms.size() || kept.empty()) return std::nullopt;
  return most(names, opened(names, {std::move(kept)}).terms);
}

}  // namespace

bool may_have(const Sum& sum, int sign, const Signs& signs) {
  const Mask wanted = sign < 0 ? kNegative : sign > 0 ? kPositive : kZero;
  return (mask_of(sum, signs) & wanted) != 0;
}

std::optional<Sum> where_equal(Names& names, const Term& term) {
  const auto is_equality = [](const Factor& f) {
    return f.kind == Kind::Apply && f.fn == Fn::Equal && f.truth && f.exponent.is(1);
  };
  for (const Factor& equality : term.factors) {
    if (!is_equality(equality)) continue;
    const auto zero = solved(args_of(equality)[0]);
    if (!zero) continue;
    bool found = false;
    Term rest = term;
    std::erase_if(rest.factors, [&](const Factor& f) { return compare(f, equality) == 0; });
    const Sum made = changed(names, rest, {.factors = [&](const Factor& f) -> std::optional<Sum> {
                               if (compare_bases(f, zero->factor) != 0) return std::nullopt;
                               if (f.exponent.sign() < 0 && zero->value.terms.empty())
                                 return std::nullopt;
                               found = true;
                               return power(names, opened(names, zero->value), f.exponent);
                             }});
    if (found) return product(names, made, factor(equality));
  }
  return std::nullopt;
}

Sum decided(Names& names, const Sum& sum, const Signs& signs) {
  std::vector<SolvedFactor> zeros;
  for (const Sign& sign : signs)
    if (sign.sign == 0)
      if (auto one = solved(sign.of)) zeros.push_back(*std::move(one));
  const auto put_in = [&](const Factor& factor) -> std::optional<Sum> {
    for (const SolvedFactor& zero : zeros)
      if (compare_bases(zero.factor, factor) == 0)
        return power(names, opened(names, zero.value), factor.exponent);
    if (factor.truth)
      for (const Sign& sign : signs)
        if (const Factor* known = only_factor(sign.of);
            known != nullptr && compare_bases(*known, factor) == 0 && sign.sign >= 0)
          return constant(sign.sign);
    if (factor.kind == Kind::Apply && factor.truth) {
      const Mask mask = mask_of(args_of(factor)[0], signs);
      const Mask yes = factor.fn == Fn::Less ? kNegative : kZero;
      if (mask == yes) return constant(1);
      if ((mask & yes) == 0) return Sum{};
    }
    if (factor.kind == Kind::Most)
      if (auto one = without_lower(names, factor, signs))
        return power(names, *one, factor.exponent);
    return std::nullopt;
  };
  constexpr int kRounds = 4;
  Sum result = closed(sum);
  for (int round = 0; round < kRounds; ++round) {
    Sum next = closed(changed(names, opened(names, result), {.factors = put_in}));
    if (same(next, result)) break;
    result = std::move(next);
  }
  return opened(names, std::move(result));
}

}  // namespace tessera::algebra
