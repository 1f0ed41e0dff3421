#include <algorithm>

#include "tessera/expr/algebra_parts.h"

namespace tessera::algebra {
namespace {

/// Whether every number of a type is one of another.
bool fits(DType from, DType to) {
  if (from == to) return true;
  // f16 has a smaller range than f8e8m0.
  if (is_float(to) && from == DType::F8E8M0) return byte_width(to) > 2;
  if (is_float(to)) return byte_width(from) < byte_width(to) && to != DType::BF16;
  const bool natural = from == DType::U8 || from == DType::U16 || from == DType::U32;
  const bool whole = from == DType::I8 || from == DType::I16 || from == DType::I32;
  const bool into_whole = to == DType::I16 || to == DType::I32 || to == DType::I64;
  if (from == DType::Bool) return true;
  if (into_whole) return (natural || whole) && byte_width(from) < byte_width(to);
  return natural && (to == DType::U16 || to == DType::U32 || to == DType::U64) &&
         byte_width(from) < byte_width(to);
}

/// Whether a type has this number.
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
    case Fn::Floor:
    case Fn::Round: return x.is_integer() ? std::optional<Rational>(x) : std::nullopt;
    case Fn::Less: return x.sign() < 0 ? 1 : 0;
    case Fn::Equal: return x.sign() == 0 ? 1 : 0;
    default: return std::nullopt;
  }
}

Sum exponential(const Sum& arg) {
  const auto is_bottom = [](const Factor& f) { return f.kind == Kind::Bottom; };
  const auto below = std::ranges::count_if(
      arg.terms, [&](const Term& term) { return std::ranges::any_of(term.factors, is_bottom); });
  for (const Term& term : arg.terms)
    if (const Factor* only = only_factor(term);
        below == 1 && only != nullptr && is_bottom(*only) && term.coefficient.sign() > 0)
      return {};
  // Minus infinity under a guard or a condition: what that comes to is seen where it is decided.
  if (below != 0) return factor({.kind = Kind::Apply, .fn = Fn::Exp, .args = shared({arg})});
  Term result;
  for (const Term& term : arg.terms) {
    Term one = term;
    one.coefficient = 1;
    multiply_in(result, {.kind = Kind::Apply,
                         .fn = Fn::Exp,
                         .args = shared({{{std::move(one)}}}),
                         .exponent = term.coefficient});
  }
  return {{std::move(result)}};
}

Sum logarithm(Names& names, const Sum& arg) {
  const auto whole = [](const Sum& of) {
    return factor({.kind = Kind::Apply, .fn = Fn::Log, .args = shared({of})});
  };
  if (arg.terms.size() != 1 || !is_plain(arg.terms[0])) return whole(arg);
  // log(a^e * rest) = e*log(a) + log(rest), where a is an exponential or all there is.
  Term rest = arg.terms[0];
  Sum result;
  for (std::size_t i = 0; i < rest.factors.size();) {
    const Factor f = rest.factors[i];
    const bool exponential = f.kind == Kind::Apply && f.fn == Fn::Exp;
    const bool lone = rest.factors.size() == 1 && rest.coefficient.is(1) && !has_even_exponent(f) &&
                      !f.exponent.is(1);
    if (!exponential && !lone) {
      ++i;
      continue;
    }
    result =
        add(std::move(result), scaled(exponential ? opened(names, args_of(f)[0])
                                                  : logarithm(names, closed(factor(base_of(f)))),
                                      f.exponent));
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
  // What has been of a type that fits into this one stays as it is.
  if (const Factor* only = only_factor(arg); only != nullptr && arg.terms[0].coefficient.is(1)) {
    const bool typed = only->kind == Kind::Read || only->kind == Kind::Cast;
    if (typed && only->exponent.is(1) && fits(only->to, to)) return arg;
  }
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
      // A sum over itself; other quotients come apart at the terms above the line.
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
  if (fn == Fn::Exp) return exponential(args[0]);
  if (fn == Fn::Log && !constant_of(args[0])) return logarithm(names, args[0]);
  if (fn == Fn::Less || fn == Fn::Equal) {
    // Both compare a difference with zero: only its sign counts.
    args = {closed(add(std::move(args[0]), scaled(std::move(args[1]), -1)))};
    if (!args[0].terms.empty() && !constant_of(args[0])) {
      Rational measure = content_of({&args[0]}, Leaves::Positive).measure.inverse();
      if (fn == Fn::Equal && leads_negative(args[0])) measure *= -1;
      args[0] = scaled(std::move(args[0]), measure);
    }
  }
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
  if (!truncates) return apply(names, fn, std::move(args));
  if (std::ranges::any_of(args, is_poisoned)) return poison();
  for (Sum& arg : args) arg = closed(std::move(arg));
  return factor({.kind = Kind::Apply, .fn = fn, .to = DType::I64, .args = shared(std::move(args))});
}

}  // namespace tessera::algebra
