#include <algorithm>

#include "tessera/expr/algebra_internal.h"
#include "tessera/expr/exact_cast.h"

namespace tessera::algebra {
namespace {

/// Whether a type can represent this number.
bool holds(DType type, std::int64_t number) {
  if (type == DType::F16) return number >= -2048 && number <= 2048;
  if (type == DType::BF16) return number >= -256 && number <= 256;
  if (type == DType::U64) return number >= 0;
  const auto [least, most] = integer_range(type);
  return !is_float(type) && number >= least && number <= most;
}

std::optional<Rational> value_at_number(Fn fn, const Rational& x) {
  switch (fn) {
    case Fn::Sin:
    case Fn::Atan:
    case Fn::Tanh:
    case Fn::Erf: return x.is(0) ? std::optional<Rational>(0) : std::nullopt;
    case Fn::Cos: return x.is(0) ? std::optional<Rational>(1) : std::nullopt;
    case Fn::Log: return x.is(1) ? std::optional<Rational>(0) : std::nullopt;
    case Fn::Less: return x.sign() < 0 ? 1 : 0;
    case Fn::Equal: return x.sign() == 0 ? 1 : 0;
    default: return std::nullopt;
  }
}

/// The sum as a Dim if it consists of sizes and indices only.
std::optional<Dim> dim_of(const Sum& sum) {
  Dim result = 0;
  for (const Term& term : sum.terms) {
    const auto coefficient = term.coefficient.integer();
    if (!is_plain(term) || !coefficient) return std::nullopt;
    Dim one = *coefficient;
    for (const Factor& factor : term.factors) {
      const auto exponent = factor.exponent.integer();
      if (factor.kind != Kind::Number || !exponent || *exponent < 0 || *exponent > kMostFactors)
        return std::nullopt;
      for (std::int64_t i = 0; i < *exponent; ++i) one = one * factor.at[0];
    }
    result = result + one;
  }
  return result.is_undefined() ? std::nullopt : std::optional(result);
}

/// c + k*t, where t is 0 or 1.
struct AffineInTruth {
  Rational constant = 0, times = 0;
  Factor truth = {};
};
std::optional<AffineInTruth> of_truth(const Sum& sum) {
  AffineInTruth result;
  for (const Term& term : sum.terms) {
    if (is_number(term)) {
      result.constant = term.coefficient;
      continue;
    }
    const Factor* only = only_factor(term);
    if (only == nullptr || !only->truth || !only->exponent.is(1) || !result.times.is(0))
      return std::nullopt;
    result.times = term.coefficient;
    result.truth = *only;
  }
  return result.times.is(0) ? std::nullopt : std::optional(result);
}

/// Comparison of a sum with zero as 1 or 0, if sign analysis decides it.
std::optional<Sum> compared(Fn fn, const Sum& arg) {
  if (const auto by = of_truth(arg)) {
    const auto at = [&](const Rational& x) {
      return (fn == Fn::Less ? x.sign() < 0 : x.sign() == 0) ? 1 : 0;
    };
    const int no = at(by->constant), yes = at(by->constant + by->times);
    return add(constant(no), scaled(factor(by->truth), yes - no));
  }
  const Mask mask = mask_of(arg, {}), yes = fn == Fn::Less ? kNegative : kZero;
  if (mask == yes) return constant(1);
  if ((mask & yes) == 0) return Sum{};
  const std::optional<Dim> dim = dim_of(arg);
  if (!dim) return std::nullopt;
  return fn == Fn::Less ? indicator({-*dim - 1}) : indicator({*dim, -*dim});
}

/// Whether a sum is an integer for all values of its elements.
bool is_whole(const Sum& sum);
bool is_whole(const Factor& factor) {
  if (factor.exponent.sign() < 0 || !factor.exponent.is_integer()) return false;
  if (factor.truth) return true;
  switch (factor.kind) {
    case Kind::Number: return true;
    case Kind::Read:
    case Kind::Cast: return !is_float(factor.to) && factor.to != DType::String;
    case Kind::Apply:
      return factor.fn == Fn::Floor || factor.fn == Fn::Round || factor.to == DType::I64;
    case Kind::Power: return is_whole(args_of(factor)[0]);
    case Kind::Most:
      return std::ranges::all_of(args_of(factor)[0].terms,
                                 [](const Term& piece) { return is_whole(value_of(piece)); });
    default: return false;
  }
}
bool is_whole(const Term& term) {
  return term.coefficient.is_integer() &&
         std::ranges::all_of(term.factors, [](const Factor& f) { return is_whole(f); });
}
bool is_whole(const Sum& sum) {
  return std::ranges::all_of(sum.terms, [](const Term& term) { return is_whole(term); });
}

const Factor* application(const Sum& sum, Fn fn) {
  const Factor* only = only_factor(sum);
  const bool is_it = only != nullptr && only->kind == Kind::Apply && only->fn == fn &&
                     only->exponent.is(1) && sum.terms[0].coefficient.is(1);
  return is_it ? only : nullptr;
}

/// The term of a sum that is a multiple of a maximum, if all others are numbers.
const Term* multiple_of_maximum(const Sum& sum) {
  const Term* found = nullptr;
  for (const Term& term : sum.terms) {
    if (is_number(term)) continue;
    const Factor* only = only_factor(term);
    if (found != nullptr || only == nullptr || only->kind != Kind::Most || !only->exponent.is(1))
      return nullptr;
    found = &term;
  }
  return found;
}

/// round(c*max(a, b) + n) = max(round(c*a + n), round(c*b + n)) for numbers c > 0 and n, and so for
/// floor: they are monotone.
std::optional<Sum> rounded_operands(Names& names, Fn fn, const Sum& arg) {
  const Term* multiple = multiple_of_maximum(arg);
  if (multiple == nullptr || multiple->coefficient.sign() <= 0) return std::nullopt;
  Sum number;
  for (const Term& term : arg.terms)
    if (&term != multiple) number.terms.push_back(term);
  std::vector<Term> pieces = opened(names, args_of(*only_factor(*multiple))[0]).terms;
  for (Term& piece : pieces) {
    Sum value = scaled(opened(names, value_of(piece)), multiple->coefficient);
    piece.factors = group(apply(names, fn, {add(number, std::move(value))})).factors;
  }
  return most(names, std::move(pieces));
}

/// floor(a + n) = floor(a) + n for an integer n; round(-a) = -round(a).
Sum rounded(Names& names, Fn fn, const Sum& arg) {
  if (is_whole(arg)) return arg;
  if (const auto number = constant_of(arg)) {
    const Rational made = fn == Fn::Floor ? number->floor() : number->round();
    if (!made.is_undefined()) return constant(made);
  }
  Sum whole, rest;
  for (const Term& term : arg.terms)
    (fn == Fn::Floor && is_whole(term) ? whole : rest).terms.push_back(term);
  const Term* multiple = multiple_of_maximum(rest);
  const bool is_negative =
      multiple != nullptr ? multiple->coefficient.sign() < 0 : leads_negative(rest);
  const bool flipped = fn == Fn::Round && is_negative;
  if (flipped) rest = closed(scaled(std::move(rest), -1));
  auto made = rounded_operands(names, fn, rest);
  if (!made) made = factor({.kind = Kind::Apply, .fn = fn, .args = shared({std::move(rest)})});
  return add(std::move(whole), scaled(*std::move(made), flipped ? -1 : 1));
}

/// mod(a + c*n, c) = mod(a, c) for an integer n, and mod(mod(a, k*c), c) = mod(a, c).
Sum remainder(const Sum& arg, const Rational& by) {
  Sum rest;
  for (const Term& term : arg.terms) {
    Term share = term;
    share.coefficient *= by.inverse();
    if (is_whole(share)) continue;
    const Sum alone{{term}};
    const Factor* inner = application(alone, Fn::Mod);
    const auto divisor = inner == nullptr ? std::nullopt : constant_of(args_of(*inner)[1]);
    if (divisor && (*divisor / by).is_integer() && arg.terms.size() == 1)
      return remainder(args_of(*inner)[0], by);
    rest.terms.push_back(term);
  }
  if (rest.terms.empty()) return {};
  return factor({.kind = Kind::Apply, .fn = Fn::Mod, .args = shared({rest, constant(by)})});
}

/// Integer type of a bit pattern.
std::optional<DType> bits_of(const Sum& sum);
Rational all_bits(DType type) {
  if (is_signed(type)) return -1;
  return Rational((std::int64_t{1} << (8 * byte_width(type))) - 1);
}
std::optional<DType> bits_of(const Factor& factor) {
  if (!factor.exponent.is(1)) return std::nullopt;
  if (factor.kind == Kind::Read || factor.kind == Kind::Cast) {
    const bool fits = !is_float(factor.to) && factor.to != DType::String &&
                      factor.to != DType::Bool && factor.to != DType::U64 && !is_small(factor.to);
    return fits ? std::optional(factor.to) : std::nullopt;
  }
  if (factor.kind != Kind::Apply || (factor.fn != Fn::And && factor.fn != Fn::Xor))
    return std::nullopt;
  const auto left = bits_of(args_of(factor)[0]), right = bits_of(args_of(factor)[1]);
  return left == right ? left : std::nullopt;
}
std::optional<DType> bits_of(const Sum& sum) {
  if (const Factor* only = only_factor(sum); only != nullptr && sum.terms[0].coefficient.is(1))
    return bits_of(*only);
  // All bits minus some: a complement.
  if (sum.terms.size() != 2 || !is_number(sum.terms[0])) return std::nullopt;
  const Factor* only = only_factor(sum.terms[1]);
  if (only == nullptr || !sum.terms[1].coefficient.is(-1)) return std::nullopt;
  const auto type = bits_of(*only);
  return type && sum.terms[0].coefficient == all_bits(*type) ? type : std::nullopt;
}

/// Bitwise functions of integers: ~x = mask - x, x|y = x + y - (x&y), and (mask - x)&y = y - (x&y)
/// for x and y of one type.
std::optional<Sum> of_bits(Fn fn, const Args& args) {
  const auto type = bits_of(args[0]);
  if (fn == Fn::Not) {
    if (!type) return std::nullopt;
    return add(constant(all_bits(*type)), scaled(args[0], -1));
  }
  if (fn != Fn::And && fn != Fn::Or && fn != Fn::Xor) return std::nullopt;
  Args sides = args;
  if (compare(sides[1], sides[0]) < 0) std::swap(sides[0], sides[1]);
  if (same(sides[0], sides[1])) return fn == Fn::Xor ? Sum{} : sides[0];
  const auto both = [&](Fn of, const Sum& a, const Sum& b) {
    Args sorted{a, b};
    if (compare(b, a) < 0) std::swap(sorted[0], sorted[1]);
    return factor(
        {.kind = Kind::Apply, .fn = of, .to = DType::I64, .args = shared(std::move(sorted))});
  };
  if (fn == Fn::Or) {
    const auto common = of_bits(Fn::And, sides);
    return add(add(sides[0], sides[1]), scaled(*common, -1));
  }
  for (const int i : {0, 1}) {
    const Sum &one = sides[i], &other = sides[1 - i];
    // x ^ (x ^ y) = y, x & (x & y) = x & y
    if (const Factor* inner = application(one, fn))
      for (const int k : {0, 1})
        if (same(args_of(*inner)[k], other)) return fn == Fn::Xor ? args_of(*inner)[1 - k] : one;
    if (fn == Fn::And && one.terms.size() == 2 && bits_of(one) && bits_of(one) == bits_of(other)) {
      const Sum complement = scaled({{one.terms[1]}}, -1);
      return add(other, scaled(*of_bits(Fn::And, {complement, other}), -1));
    }
  }
  return both(fn, sides[0], sides[1]);
}

Sum exponential(Names& names, const Sum& arg) {
  const auto is_bottom = [](const Factor& f) { return f.kind == Kind::Bottom; };
  const auto below = std::ranges::count_if(
      arg.terms, [&](const Term& term) { return std::ranges::any_of(term.factors, is_bottom); });
  for (const Term& term : arg.terms)
    if (const Factor* only = only_factor(term);
        below == 1 && only != nullptr && is_bottom(*only) && term.coefficient.sign() > 0)
      return {};
  // Minus infinity under a guard or a condition: simplified once the guard is decided.
  if (below != 0) return factor({.kind = Kind::Apply, .fn = Fn::Exp, .args = shared({arg})});
  Term result;
  Sum powers = constant(1);
  for (const Term& term : arg.terms) {
    // exp(c*log(a)) = a^c
    if (const Factor* only = only_factor(term); only != nullptr && only->exponent.is(1) &&
                                                only->kind == Kind::Apply && only->fn == Fn::Log) {
      powers =
          product(names, powers, power(names, opened(names, args_of(*only)[0]), term.coefficient));
      continue;
    }
    Term one = term;
    one.coefficient = 1;
    multiply_in(result, {.kind = Kind::Apply,
                         .fn = Fn::Exp,
                         .args = shared({{{std::move(one)}}}),
                         .exponent = term.coefficient});
  }
  return product(names, {{std::move(result)}}, powers);
}

Sum logarithm(Names& names, const Sum& arg) {
  const auto whole = [](const Sum& of) {
    return factor({.kind = Kind::Apply, .fn = Fn::Log, .args = shared({of})});
  };
  if (arg.terms.size() != 1 || !is_plain(arg.terms[0])) {
    const Content common{.factors = common_exponentials(arg)};
    if (common.factors.empty()) return whole(arg);
    Sum result = logarithm(names, closed(divided(arg, common)));
    for (const Factor& f : common.factors)
      result = add(std::move(result), scaled(opened(names, args_of(f)[0]), f.exponent));
    return result;
  }
  // log(a^e * rest) = e*log(a) + log(rest), where a is an exponential or all there is.
  Term rest = arg.terms[0];
  Sum result;
  for (std::size_t i = 0; i < rest.factors.size();) {
    const Factor f = rest.factors[i];
    const bool exponential = f.kind == Kind::Apply && f.fn == Fn::Exp;
    const bool lone = rest.factors.size() == 1 && rest.coefficient.is(1) && !f.exponent.is(1);
    if (!exponential && !lone) {
      ++i;
      continue;
    }
    Sum base = factor(base_of(f));
    if (!exponential && has_even_exponent(f))
      base = most(names, {group(base), group(scaled(base, -1))});
    const Sum one =
        exponential ? opened(names, args_of(f)[0]) : logarithm(names, closed(std::move(base)));
    result = add(std::move(result), scaled(one, f.exponent));
    rest.factors.erase(rest.factors.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (is_number(rest) && rest.coefficient.is(1)) return result;
  return add(std::move(result), whole({{std::move(rest)}}));
}

}  // namespace

Sum cast(DType to, Sum arg) {
  if (is_poisoned(arg)) return poison();
  if (const auto value = constant_of(arg);
      value && value->integer() && holds(to, *value->integer()))
    return arg;
  // A cast of a value that is exactly representable in the target type is the value.
  if (const Factor* only = only_factor(arg); only != nullptr && arg.terms[0].coefficient.is(1)) {
    const bool typed = only->kind == Kind::Read || only->kind == Kind::Cast;
    if (typed && only->exponent.is(1) && is_exact_cast(only->to, to)) return arg;
  }
  if (is_whole(arg) && lies_in_range(arg, to)) return arg;
  return factor({.kind = Kind::Cast, .to = to, .args = shared({closed(std::move(arg))})});
}

Sum apply(Names& names, Fn fn, std::vector<Sum> args) {
  if (std::ranges::any_of(args, is_poisoned)) return poison();
  switch (fn) {
    case Fn::Add: return add(std::move(args[0]), args[1]);
    case Fn::Sub: return add(std::move(args[0]), scaled(std::move(args[1]), -1));
    case Fn::Neg: return scaled(std::move(args[0]), -1);
    case Fn::Mul: return product(names, args[0], args[1]);
    case Fn::Div:
      // x / x = 1; other quotients are split by the terms of the numerator.
      if (same(closed(args[0]), closed(args[1])) && !args[0].terms.empty()) return constant(1);
      return product(names, args[0], power(names, args[1], -1));
    case Fn::Sqrt: return power(names, args[0], Rational::of(1, 2));
    case Fn::Abs: return most(names, {group(args[0]), group(scaled(args[0], -1))});
    case Fn::Max: return most(names, {group(std::move(args[0])), group(std::move(args[1]))});
    case Fn::Min:
      return scaled(most(names, {group(scaled(std::move(args[0]), -1)),
                                 group(scaled(std::move(args[1]), -1))}),
                    -1);
    case Fn::Pow:
      if (const auto exponent = constant_of(args[1])) return power(names, args[0], *exponent);
      break;
    default: break;
  }
  for (Sum& arg : args) arg = closed(std::move(arg));
  if (fn == Fn::Exp) return exponential(names, args[0]);
  if (fn == Fn::Log && !constant_of(args[0])) return logarithm(names, args[0]);
  if (fn == Fn::Less || fn == Fn::Equal) {
    // Compares the difference with zero: only its sign matters.
    args = {closed(add(std::move(args[0]), scaled(std::move(args[1]), -1)))};
    if (!args[0].terms.empty() && !constant_of(args[0])) {
      Rational measure = content_of({&args[0]}, Extractable::Positive).measure.inverse();
      if (fn == Fn::Equal && leads_negative(args[0])) measure *= -1;
      args[0] = scaled(std::move(args[0]), measure);
    }
    if (auto value = compared(fn, args[0])) return *std::move(value);
  }
  if (fn == Fn::Floor || fn == Fn::Round) return rounded(names, fn, args[0]);
  if (fn == Fn::Mod)
    if (const auto by = constant_of(args[1]); by && by->sign() > 0) return remainder(args[0], *by);
  if (args.size() == 1)
    if (const auto number = constant_of(args[0]))
      if (const auto value = value_at_number(fn, *number)) return constant(*value);
  const bool odd = fn == Fn::Sin || fn == Fn::Atan || fn == Fn::Tanh || fn == Fn::Erf;
  const bool flipped = (odd || fn == Fn::Cos) && leads_negative(args[0]);
  if (flipped) args[0] = closed(scaled(std::move(args[0]), -1));
  const bool truth = fn == Fn::Less || fn == Fn::Equal;
  return scaled(
      factor({.kind = Kind::Apply, .fn = fn, .truth = truth, .args = shared(std::move(args))}),
      odd && flipped ? -1 : 1);
}

Sum apply_to_integers(Names& names, Fn fn, std::vector<Sum> args) {
  const auto exponent = fn == Fn::Pow ? constant_of(args[1]) : std::nullopt;
  const bool truncates = fn == Fn::Div || (fn == Fn::Pow && !(exponent && exponent->sign() >= 0));
  if (std::ranges::any_of(args, is_poisoned)) return poison();
  const auto second = args.size() > 1 ? constant_of(closed(args[1])) : std::nullopt;
  const auto places = second ? second->integer() : std::nullopt;
  if ((fn == Fn::ShiftLeft || fn == Fn::ShiftRight) && places && *places >= 0 && *places < 32) {
    const Rational times = std::int64_t{1} << *places;
    if (fn == Fn::ShiftLeft) return scaled(std::move(args[0]), times);
    // Truncation and floor agree for non-negative numbers.
    if ((mask_of(closed(args[0]), {}) & kNegative) == 0)
      return apply_to_integers(names, Fn::Div, {std::move(args[0]), constant(times)});
  }
  if (!truncates) {
    const bool bits = fn == Fn::Not || fn == Fn::And || fn == Fn::Or || fn == Fn::Xor;
    if (!bits) return apply(names, fn, std::move(args));
    for (Sum& arg : args) arg = closed(std::move(arg));
    if (auto made = of_bits(fn, args)) return opened(names, *std::move(made));
    return factor(
        {.kind = Kind::Apply, .fn = fn, .to = DType::I64, .args = shared(std::move(args))});
  }
  for (Sum& arg : args) arg = closed(std::move(arg));
  if (fn == Fn::Div && second && second->is(1)) return opened(names, args[0]);
  // (x / a) / b = x / (a * b) for positive numbers.
  if (const Factor* inner =
          fn == Fn::Div && second && second->sign() > 0 ? application(args[0], Fn::Div) : nullptr)
    if (const auto first = constant_of(args_of(*inner)[1]);
        first && first->sign() > 0 && inner->to == DType::I64)
      return apply_to_integers(names, Fn::Div,
                               {opened(names, args_of(*inner)[0]), constant(*first * *second)});
  return factor({.kind = Kind::Apply, .fn = fn, .to = DType::I64, .args = shared(std::move(args))});
}

}  // namespace tessera::algebra
