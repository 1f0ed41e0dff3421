#include "tessera/expr/algebra.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "tessera/support/check.h"

namespace tessera::algebra {
namespace {

using Kind = Factor::Kind;
using Args = std::vector<Sum>;

std::shared_ptr<const Args> shared(Args args) {
  return std::make_shared<const Args>(std::move(args));
}

const Args& args_of(const Factor& factor) {
  static const Args kNone;
  return factor.args == nullptr ? kNone : *factor.args;
}

/// Everything but the exponent.
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

/// Everything but the coefficient.
std::strong_ordering compare_bodies(const Term& a, const Term& b) {
  if (const auto order = a.bound <=> b.bound; order != 0) return order;
  if (const auto order = a.guards <=> b.guards; order != 0) return order;
  return std::lexicographical_compare_three_way(
      a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(),
      [](const Factor& x, const Factor& y) { return compare(x, y); });
}

constexpr std::int64_t kMostFactors = 8;  // of a power that is written out

/// What is not defined makes all of it so.
bool is_poisoned(const Sum& sum) {
  return std::ranges::any_of(sum.terms,
                             [](const Term& term) { return term.coefficient.is_undefined(); });
}

Sum poison() {
  return constant(Rational::undefined());
}

bool is_plain(const Term& term) {
  return term.bound.empty() && term.guards.empty();
}

bool is_number(const Term& term) {
  return is_plain(term) && term.factors.empty();
}

/// Whether it is never negative.
bool is_positive(const Factor& factor) {
  switch (factor.kind) {
    case Kind::Number: return factor.at[0].least().value_or(-1) >= 0;
    case Kind::Apply: return factor.truth || factor.fn == Fn::Exp;
    case Kind::Read: return factor.truth;
    case Kind::Power: {
      const auto whole = factor.exponent.integer();
      if (!whole || *whole % 2 == 0) return true;
      // A sum of what is not negative.
      return std::ranges::all_of(args_of(factor)[0].terms, [](const Term& term) {
        return term.coefficient.sign() > 0 && std::ranges::all_of(term.factors, is_positive);
      });
    }
    case Kind::Most: {
      // At least as large as one that is not negative everywhere.
      return std::ranges::any_of(args_of(factor)[0].terms, [](const Term& piece) {
        if (!is_plain(piece)) return false;
        const Sum& value = args_of(piece.factors[0])[0];
        return std::ranges::all_of(value.terms, [](const Term& term) {
          return term.coefficient.sign() > 0 && std::ranges::all_of(term.factors, is_positive);
        });
      });
    }
    default: return false;
  }
}

bool has_even_exponent(const Factor& factor) {
  const auto whole = factor.exponent.integer();
  return whole && *whole % 2 == 0;
}

/// Whether every number of a type is one of another.
bool fits(DType from, DType to) {
  if (from == to) return true;
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
  const auto within = [&](std::int64_t least, std::int64_t most) {
    return number >= least && number <= most;
  };
  switch (type) {
    case DType::F16: return within(-2048, 2048);
    case DType::BF16: return within(-256, 256);
    case DType::Bool: return within(0, 1);
    case DType::I8: return within(-128, 127);
    case DType::I16: return within(-32768, 32767);
    case DType::I32: return within(-(std::int64_t{1} << 31), (std::int64_t{1} << 31) - 1);
    case DType::U8: return within(0, 255);
    case DType::U16: return within(0, 65535);
    case DType::U32: return within(0, (std::int64_t{1} << 32) - 1);
    case DType::U64: return number >= 0;
    default: return type == DType::I64;
  }
}

/// Adds a factor to a sorted product; exponents of equal bases add up.
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

/// Powers that came together to whole ones are no longer kept apart.
Sum with_whole_powers(Names& names, Term term) {
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
    } else if (factor.kind == Kind::Power && whole && *whole > 0 && *whole <= kMostFactors) {
      const Sum grown = power(names, opened(names, args_of(factor)[0]), *whole);
      rest = product(names, rest, grown);
      changed = true;
      term.factors.erase(term.factors.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    ++i;
  }
  Sum result{{std::move(term)}};
  return changed ? product(names, result, rest) : result;
}

Sum product_of(Names& names, const Term& a, const Term& b) {
  Term result = a;
  result.coefficient *= b.coefficient;
  result.bound.insert(result.bound.end(), b.bound.begin(), b.bound.end());
  for (const Dim& guard : b.guards)
    if (std::ranges::find(result.guards, guard) == result.guards.end())
      result.guards.push_back(guard);
  for (const Factor& factor : b.factors) multiply_in(result, factor);
  return with_whole_powers(names, std::move(result));
}

/// What all terms have in common: the measure of the coefficients, and factors.
struct Content {
  Rational measure = 1;
  std::vector<Factor> factors = {};
};

/// Which factors may leave: all; those that are not negative; those whose base is not.
enum class Leaves { All, Positive, PositiveBase };

/// `free` says of which symbols the common factors may not speak.
Content content_of(const std::vector<const Term*>& terms, Leaves leaves,
                   const std::vector<std::string>& free) {
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
    Factor sign = common;
    if (leaves == Leaves::PositiveBase) sign.exponent = 1;
    if (everywhere && is_free(candidate, free) && (leaves == Leaves::All || is_positive(sign)))
      content.factors.push_back(common);
  }
  return content;
}

/// The term without the content.
Term divided(Term term, const Content& content) {
  term.coefficient *= content.measure.inverse();
  for (Factor factor : content.factors) {
    factor.exponent = -factor.exponent;
    multiply_in(term, factor);
  }
  return term;
}

Sum prime_root(std::int64_t value) {
  Term term;
  for (std::int64_t prime = 2; prime < 1000 && prime <= value; ++prime) {
    if (value % prime != 0) continue;
    value /= prime;
    term.factors.push_back(
        {.kind = Kind::Power, .args = shared({constant(prime)}), .exponent = Rational::of(1, 2)});
  }
  if (value > 1)
    term.factors.push_back(
        {.kind = Kind::Power, .args = shared({constant(value)}), .exponent = Rational::of(1, 2)});
  return {{std::move(term)}};
}

/// value^exponent of a number; nothing where it is not written by roots.
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

Sum power_factor(Sum base, const Rational& exponent) {
  return factor({.kind = Kind::Power, .args = shared({std::move(base)}), .exponent = exponent});
}

Sum power_of_term(Names& names, const Term& term, const Rational& exponent) {
  const auto whole = exponent.integer();
  Term taken, kept;
  for (Factor f : term.factors) {
    const bool out = whole || (is_positive(f) && !has_even_exponent(f)) ||
                     (has_even_exponent(f) && is_positive({f.kind, f.name, f.fn, f.to, f.component,
                                                           f.truth, f.at, f.args, 1}));
    if (out) {
      f.exponent *= exponent;
      multiply_in(taken, f);
    } else {
      kept.factors.push_back(f);
    }
  }
  Sum result{{taken}};
  // A negative number stays under the root with what it is multiplied by.
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
  return product(names, result, power_factor(closed({{kept}}), exponent));
}

/// Whether a sum is odd in the sense that its first coefficient is negative: f(-x) is written by
/// f(x) for even and odd functions.
bool leads_negative(const Sum& sum) {
  return !sum.terms.empty() && sum.terms.front().coefficient.sign() < 0;
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
    if (below == 1 && is_plain(term) && term.factors.size() == 1 && is_bottom(term.factors[0]) &&
        term.coefficient.sign() > 0)
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
    Factor base = f;
    base.exponent = 1;
    result = add(std::move(result), scaled(exponential ? opened(names, args_of(f)[0])
                                                       : logarithm(names, closed(factor(base))),
                                           f.exponent));
    rest.factors.erase(rest.factors.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (is_number(rest) && rest.coefficient.is(1)) return result;
  return add(std::move(result), whole({{std::move(rest)}}));
}

}  // namespace

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

Sum constant(const Rational& value) {
  if (value.is(0)) return {};
  return {{{.coefficient = value}}};
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
  return {{{.factors = {std::move(factor)}}}};
}

Sum indicator(std::vector<Dim> guards) {
  return {{{.guards = std::move(guards)}}};
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

Sum add(Sum a, const Sum& b) {
  a.terms.insert(a.terms.end(), b.terms.begin(), b.terms.end());
  return a;
}

Sum scaled(Sum sum, const Rational& by) {
  if (by.is(0)) return {};
  for (Term& term : sum.terms) term.coefficient *= by;
  return sum;
}

Sum product(Names& names, const Sum& a, const Sum& b) {
  Sum result;
  for (const Term& x : a.terms) {
    for (const Term& y : b.terms) {
      // Both may be copies of one term: the variables of one side are made others. (What x binds
      // may be spoken of in y: a range and what runs over it.)
      const bool clashes = std::ranges::any_of(y.bound, [&](const std::string& name) {
        return std::ranges::find(x.bound, name) != x.bound.end() || contains(x, name);
      });
      result =
          add(std::move(result), product_of(names, x, clashes ? opened(names, {{y}}).terms[0] : y));
    }
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
  if (inner.terms.empty())
    return exponent.sign() > 0 ? Sum{} : constant(Rational::undefined());  // 1/0
  if (inner.terms.size() == 1 && is_plain(inner.terms[0]))
    return power_of_term(names, inner.terms[0], exponent);
  std::vector<const Term*> terms;
  for (const Term& term : inner.terms) terms.push_back(&term);
  Content content = content_of(terms, whole ? Leaves::All : Leaves::PositiveBase, {});
  if (whole && leads_negative(inner)) content.measure *= -1;
  const auto outer = number_power(names, content.measure, exponent);
  if (!outer) content.measure = 1;
  Sum rest;
  for (const Term& term : inner.terms) rest.terms.push_back(divided(term, content));
  Term common;
  for (Factor f : content.factors) {
    f.exponent *= exponent;
    common.factors.push_back(std::move(f));
  }
  Sum result = product(names, outer.value_or(constant(1)), with_whole_powers(names, common));
  return product(names, result, power_factor(closed(std::move(rest)), exponent));
}

Sum cast(DType to, Sum arg) {
  if (is_poisoned(arg)) return poison();
  if (const auto value = constant_of(arg);
      value && value->integer() && holds(to, *value->integer()))
    return arg;
  // What has been of a type that fits into this one stays as it is.
  if (arg.terms.size() == 1 && is_plain(arg.terms[0]) && arg.terms[0].coefficient.is(1) &&
      arg.terms[0].factors.size() == 1) {
    const Factor& only = arg.terms[0].factors[0];
    const bool typed = only.kind == Kind::Read || only.kind == Kind::Cast;
    if (typed && only.exponent.is(1) && fits(only.to, to)) return arg;
  }
  return factor({.kind = Kind::Cast, .to = to, .args = shared({closed(std::move(arg))})});
}

Term group(Sum value) {
  return {.factors = {{.kind = Kind::Group, .args = shared({closed(std::move(value))})}}};
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
      std::vector<const Term*> terms;
      for (const Term& term : args[0].terms) terms.push_back(&term);
      Rational measure = content_of(terms, Leaves::Positive, {}).measure.inverse();
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

Sum most(Names& names, std::vector<Term> groups) {
  const auto value_of = [](const Term& piece) -> const Sum& {
    return args_of(piece.factors[0])[0];
  };
  for (const Term& piece : groups)
    if (is_poisoned(value_of(piece))) return poison();
  // The largest of largest ones is the largest of all of them.
  std::vector<Term> flat;
  for (Term& piece : groups) {
    const Sum& value = value_of(piece);
    const Term* only = value.terms.size() == 1 ? value.terms.data() : nullptr;
    const bool nested = only != nullptr && is_plain(*only) && only->factors.size() == 1 &&
                        only->factors[0].kind == Kind::Most && only->factors[0].exponent.is(1) &&
                        only->coefficient.sign() > 0;
    if (only != nullptr && is_plain(*only) && only->factors.size() == 1 &&
        only->factors[0].kind == Kind::Bottom && only->coefficient.sign() > 0)
      continue;
    if (!nested) {
      flat.push_back(std::move(piece));
      continue;
    }
    const Rational scale = only->coefficient;
    for (Term inner : opened(names, args_of(only->factors[0])[0]).terms) {
      inner.bound.insert(inner.bound.end(), piece.bound.begin(), piece.bound.end());
      inner.guards.insert(inner.guards.end(), piece.guards.begin(), piece.guards.end());
      inner.factors = group(scaled(value_of(inner), scale)).factors;
      flat.push_back(std::move(inner));
    }
  }
  if (flat.empty()) return factor({.kind = Kind::Bottom});
  std::vector<Term> pieces;
  std::optional<Rational> largest;  // of the numbers among them
  for (Term& piece : flat) {
    const auto value = is_plain(piece) ? constant_of(value_of(piece)) : std::nullopt;
    if (!value)
      pieces.push_back(std::move(piece));
    else if (!largest || largest->less_than(*value))
      largest = value;
  }
  if (largest) pieces.push_back(group(constant(*largest)));
  // Equal ones count once.
  Sum closed_pieces = closed({std::move(pieces)});
  for (Term& piece : closed_pieces.terms) piece.coefficient = 1;
  if (closed_pieces.terms.size() == 1 && is_plain(closed_pieces.terms[0]))
    return opened(names, value_of(closed_pieces.terms[0]));

  // min(x, y), as one of them, is below x, which is another: max(x, min(x, y)) = x.
  const auto is_below_another = [&](const Term& piece) {
    const Sum& value = value_of(piece);
    if (value.terms.size() != 1 || !is_plain(value.terms[0])) return false;
    const Term& only = value.terms[0];
    if (only.factors.size() != 1 || only.factors[0].kind != Kind::Most ||
        !only.factors[0].exponent.is(1) || only.coefficient.sign() > 0)
      return false;
    return std::ranges::any_of(args_of(only.factors[0])[0].terms, [&](const Term& inner) {
      if (!is_plain(inner)) return false;
      const Sum bound = closed(scaled(value_of(inner), only.coefficient));
      return std::ranges::any_of(closed_pieces.terms, [&](const Term& other) {
        return &other != &piece && is_plain(other) && same(value_of(other), bound);
      });
    });
  };
  for (std::size_t i = 0; i < closed_pieces.terms.size(); ++i) {
    if (!is_below_another(closed_pieces.terms[i])) continue;
    std::vector<Term> rest = closed_pieces.terms;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    return most(names, opened(names, {std::move(rest)}).terms);
  }

  // What all have in common goes outside: max(a + c, b + c) = c + max(a, b), and for s > 0
  // max(s*a, s*b) = s*max(a, b).
  std::vector<std::string> bound;
  for (const Term& piece : closed_pieces.terms)
    bound.insert(bound.end(), piece.bound.begin(), piece.bound.end());
  const auto is_outer = [&](const Term& term) {
    return std::ranges::none_of(bound, [&](const std::string& s) { return contains(term, s); });
  };
  Sum outer;
  for (const Term& term : value_of(closed_pieces.terms[0]).terms) {
    const bool everywhere =
        is_outer(term) && std::ranges::all_of(closed_pieces.terms, [&](const Term& piece) {
          return std::ranges::any_of(value_of(piece).terms,
                                     [&](const Term& other) { return compare(term, other) == 0; });
        });
    if (everywhere) outer.terms.push_back(term);
  }
  if (!outer.terms.empty()) {
    std::vector<Term> rest;
    for (Term piece : closed_pieces.terms) {
      piece.factors = group(add(value_of(piece), scaled(outer, -1))).factors;
      rest.push_back(std::move(piece));
    }
    return add(most(names, opened(names, {std::move(rest)}).terms), opened(names, outer));
  }
  std::vector<const Term*> terms;
  for (const Term& piece : closed_pieces.terms)
    for (const Term& term : value_of(piece).terms) terms.push_back(&term);
  // Zero everywhere is still the largest of nothing where the ranges are empty.
  const Content content = terms.empty() ? Content{} : content_of(terms, Leaves::Positive, bound);
  if (!content.measure.is(1) || !content.factors.empty()) {
    for (Term& piece : closed_pieces.terms) {
      Sum value;
      for (const Term& term : value_of(piece).terms) value.terms.push_back(divided(term, content));
      piece.factors = group(std::move(value)).factors;
    }
    closed_pieces = closed(std::move(closed_pieces));
  }
  Term result{.coefficient = content.measure, .factors = content.factors};
  result.factors.push_back({.kind = Kind::Most, .args = shared({std::move(closed_pieces)})});
  return {{std::move(result)}};
}

Sum remade(Names& names, const Factor& factor) {
  const auto open_args = [&] {
    Args args;
    for (const Sum& arg : args_of(factor)) args.push_back(opened(names, arg));
    return args;
  };
  const Rational& exponent = factor.exponent;
  switch (factor.kind) {
    case Kind::Number:
      // The substitution may have turned a lone atom into arithmetic.
      return power(names, number(factor.at[0]), exponent);
    case Kind::Power: return power(names, opened(names, args_of(factor)[0]), exponent);
    case Kind::Apply: {
      Args args = open_args();
      if (factor.truth) args.emplace_back();
      const Sum base = apply(names, factor.fn, std::move(args));
      return power(names, base, exponent);
    }
    case Kind::Most:
      return power(names, most(names, opened(names, args_of(factor)[0]).terms), exponent);
    case Kind::Cast: return power(names, cast(factor.to, args_of(factor)[0]), exponent);
    case Kind::Read:
    case Kind::Fold:
    case Kind::Group:
    case Kind::Bottom: break;
  }
  return algebra::factor(factor);
}

Dim substituted(const Dim& dim, const Replacement& with) {
  return dim.substituted([&](std::string_view name) -> std::optional<Dim> {
    const auto here = with.find(name);
    return here == with.end() ? std::nullopt : std::optional(here->second);
  });
}

Sum changed(Names& names, const Sum& sum, const Change& change) {
  Sum result;
  for (const Term& term : sum.terms) {
    const bool skipped = change.skips && !term.bound.empty() && change.skips(term.bound);
    result = add(std::move(result), skipped ? Sum{{term}} : changed(names, term, change));
  }
  return result;
}

Sum changed(Names& names, const Term& term, const Change& change) {
  const auto dim = [&](const Dim& d) { return change.dims ? change.dims(d) : d; };
  Sum result{{{.coefficient = term.coefficient, .bound = term.bound}}};
  for (const Dim& guard : term.guards) result.terms[0].guards.push_back(dim(guard));
  for (const Factor& f : term.factors) {
    if (change.factors) {
      if (const auto other = change.factors(f)) {
        result = product(names, result, *other);
        continue;
      }
    }
    Factor next = f;
    for (Dim& d : next.at) d = dim(d);
    if (f.args != nullptr) {
      Args args;
      for (const Sum& arg : *f.args) args.push_back(closed(changed(names, arg, change)));
      next.args = shared(std::move(args));
    }
    result = product(names, result, remade(names, next));
  }
  return result;
}

namespace {

/// Inner terms must neither have what they bind replaced nor catch what is put in.
Sum away_from(Names& names, Sum sum, const Replacement& with) {
  for (Term& term : sum.terms) {
    const bool clashes = std::ranges::any_of(term.bound, [&](const std::string& name) {
      return with.contains(name) || std::ranges::any_of(with, [&](const auto& entry) {
               return entry.second.contains(name);
             });
    });
    if (clashes) term = opened(names, {{std::move(term)}}).terms[0];
    for (Factor& f : term.factors) {
      if (f.args == nullptr) continue;
      Args args;
      for (const Sum& arg : *f.args) args.push_back(away_from(names, arg, with));
      f.args = shared(std::move(args));
    }
  }
  return sum;
}

}  // namespace

Sum substituted(Names& names, const Term& term, const Replacement& with) {
  Term clear = term;
  for (Factor& f : clear.factors) {
    if (f.args == nullptr) continue;
    Args args;
    for (const Sum& arg : *f.args) args.push_back(away_from(names, arg, with));
    f.args = shared(std::move(args));
  }
  return changed(names, clear, {.dims = [&](const Dim& dim) { return substituted(dim, with); }});
}

Sum replaced(Names& names, const Term& term, const Dim& operation, const Dim& by) {
  return changed(names, term,
                 {.dims = [&](const Dim& dim) { return dim.replaced(operation, by); },
                  // What is bound there is another variable than that of the same name outside.
                  .skips =
                      [&](const std::vector<std::string>& bound) {
                        return std::ranges::any_of(bound, [&](const std::string& name) {
                          return operation.contains(name) || by.contains(name);
                        });
                      }});
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
