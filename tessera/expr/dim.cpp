#include "tessera/expr/dim.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tessera/support/check.h"
#include "tessera/support/hash.h"
#include "tessera/support/lexer.h"

namespace tessera {

struct Dim::Atom {
  enum class Kind { Symbol, FloorDiv, Mod, Min, Max, Undefined };

  Kind kind = Kind::Symbol;
  std::string name = {};                                // of a symbol
  std::shared_ptr<const Dim> a = nullptr, b = nullptr;  // of the others
  std::size_t weight = 1;                               // how many atoms it is made of

  friend std::strong_ordering operator<=>(const Atom& x, const Atom& y) {
    if (const auto order = x.kind <=> y.kind; order != 0) return order;
    if (x.kind == Kind::Symbol) return x.name <=> y.name;
    if (x.kind == Kind::Undefined) return std::strong_ordering::equal;
    if (const auto order = *x.a <=> *y.a; order != 0) return order;
    return *x.b <=> *y.b;
  }
  friend bool operator==(const Atom& x, const Atom& y) { return (x <=> y) == 0; }

  /// An operation that did not simplify.
  static Dim of(Kind kind, const Dim& a, const Dim& b) {
    return of_atom(
        {.kind = kind, .a = std::make_shared<const Dim>(a), .b = std::make_shared<const Dim>(b)});
  }

  /// Made anew of what `change` makes of its sides.
  template <class Change>
  Dim remade(const Change& change) const {
    switch (kind) {
      case Kind::Symbol: return symbol(name);
      case Kind::FloorDiv: return floor_div(change(*a), change(*b));
      case Kind::Mod: return mod(change(*a), change(*b));
      case Kind::Min: return min(change(*a), change(*b));
      case Kind::Max: return max(change(*a), change(*b));
      case Kind::Undefined: break;
    }
    return undefined();
  }
};

/// coefficient * product of the factors, which are sorted and may repeat. No factor: a constant.
struct Dim::Term {
  std::vector<Atom> factors;
  std::int64_t coefficient = 0;
};

namespace {

constexpr std::string_view kUndefined = "undefined";

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

bool divides(std::int64_t a, std::int64_t b) {  // INT64_MIN / -1 overflows
  return !(a == std::numeric_limits<std::int64_t>::min() && b == -1);
}

/// How many atoms these terms are made of, written out.
template <class Terms>
std::size_t weight(const Terms& terms) {
  std::size_t sum = 0;
  for (const auto& term : terms)
    for (const auto& factor : term.factors) sum += factor.weight;
  return sum;
}

}  // namespace

Dim Dim::of(Terms terms) {
  std::ranges::sort(terms, [](const Term& x, const Term& y) { return x.factors < y.factors; });
  Terms merged;
  for (Term& term : terms) {
    if (!merged.empty() && merged.back().factors == term.factors) {
      if (__builtin_add_overflow(merged.back().coefficient, term.coefficient,
                                 &merged.back().coefficient))
        return undefined();
    } else {
      merged.push_back(std::move(term));
    }
  }
  return of_merged(std::move(merged));
}

/// Of terms in order, each product once.
Dim Dim::of_merged(Terms merged) {
  std::erase_if(merged, [](const Term& term) { return term.coefficient == 0; });
  if (merged.empty()) return Dim(0);
  if (merged.size() == 1 && merged[0].factors.empty()) return Dim(merged[0].coefficient);
  constexpr std::size_t kHeaviest =
      1000;  // atoms share their parts: written out they could explode
  if (weight(merged) > kHeaviest) return undefined();
  Dim result;
  result.terms_ = std::make_shared<const Terms>(std::move(merged));
  return result;
}

Dim Dim::of_atom(Atom atom) {
  for (const auto& side : {atom.a, atom.b})
    if (side != nullptr && side->terms_ != nullptr) atom.weight += weight(*side->terms_);
  return of({Term{.factors = {std::move(atom)}, .coefficient = 1}});
}

Dim Dim::symbol(std::string name) {
  Dim result;
  result.terms_ = std::make_shared<const Terms>(
      1, Term{.factors = {Atom{.kind = Atom::Kind::Symbol, .name = std::move(name)}},
              .coefficient = 1});
  return result;
}

Dim Dim::undefined() {
  return of_atom({.kind = Atom::Kind::Undefined});
}

Dim::Terms Dim::terms() const {
  if (terms_ != nullptr) return *terms_;
  if (constant_ == 0) return {};
  return {Term{.factors = {}, .coefficient = constant_}};
}

std::optional<std::int64_t> Dim::constant() const {
  if (terms_ != nullptr) return std::nullopt;
  return constant_;
}

bool Dim::is_undefined() const {
  return terms_ != nullptr && terms_->size() == 1 && terms_->front().factors.size() == 1 &&
         terms_->front().factors.front().kind == Atom::Kind::Undefined;
}

std::optional<std::string_view> Dim::as_symbol() const {
  if (terms_ == nullptr || terms_->size() != 1) return std::nullopt;
  const Term& term = terms_->front();
  if (term.coefficient != 1 || term.factors.size() != 1) return std::nullopt;
  if (term.factors[0].kind != Atom::Kind::Symbol) return std::nullopt;
  return term.factors[0].name;
}

/// a + b * times; both are in order already.
Dim Dim::sum(const Dim& a, const Dim& b, std::int64_t times) {
  if (a.terms_ == nullptr && b.terms_ == nullptr) {
    const __int128 sum = __int128{a.constant_} + __int128{b.constant_} * times;
    const auto narrow = static_cast<std::int64_t>(sum);
    return narrow == sum ? Dim(narrow) : undefined();
  }
  if (a.is_undefined() || b.is_undefined()) return undefined();
  const Terms lone_a = a.terms_ == nullptr ? a.terms() : Terms{};
  const Terms lone_b = b.terms_ == nullptr ? b.terms() : Terms{};
  const Terms& left = a.terms_ == nullptr ? lone_a : *a.terms_;
  const Terms& right = b.terms_ == nullptr ? lone_b : *b.terms_;
  Terms merged;
  merged.reserve(left.size() + right.size());
  auto x = left.begin();
  for (const Term& y : right) {
    while (x != left.end() && x->factors < y.factors) merged.push_back(*x++);
    Term term = y;
    if (__builtin_mul_overflow(y.coefficient, times, &term.coefficient)) return undefined();
    if (x != left.end() && x->factors == y.factors) {
      if (__builtin_add_overflow(x->coefficient, term.coefficient, &term.coefficient))
        return undefined();
      ++x;
    }
    merged.push_back(std::move(term));
  }
  merged.insert(merged.end(), x, left.end());
  return of_merged(std::move(merged));
}

Dim operator+(const Dim& a, const Dim& b) {
  return Dim::sum(a, b, 1);
}

Dim operator-(const Dim& a, const Dim& b) {
  return Dim::sum(a, b, -1);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.terms_ == nullptr && b.terms_ == nullptr) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(a.constant_, b.constant_, &product) ? Dim::undefined()
                                                                      : Dim(product);
  }
  if (a.is_undefined() || b.is_undefined()) return Dim::undefined();
  if (a.terms_ == nullptr) return Dim::sum(0, b, a.constant_);
  if (b.terms_ == nullptr) return Dim::sum(0, a, b.constant_);
  constexpr std::size_t kMostTerms = 256;  // hostile shape arithmetic must not explode
  const Dim::Terms left = a.terms(), right = b.terms();
  if (left.size() * right.size() > kMostTerms) return Dim::undefined();
  Dim::Terms terms;
  for (const Dim::Term& x : left) {
    for (const Dim::Term& y : right) {
      Dim::Term term{.factors = x.factors};
      term.factors.insert(term.factors.end(), y.factors.begin(), y.factors.end());
      if (term.factors.size() > 64) return Dim::undefined();
      std::ranges::sort(term.factors);
      if (__builtin_mul_overflow(x.coefficient, y.coefficient, &term.coefficient))
        return Dim::undefined();
      terms.push_back(std::move(term));
    }
  }
  return Dim::of(std::move(terms));
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (a.is_undefined() || b.is_undefined() || b.is(0)) return Dim::undefined();
  if (b.is(1)) return a;
  if (a.is(0)) return a;
  if (a.terms_ == nullptr && b.terms_ == nullptr) {
    if (!divides(a.constant_, b.constant_)) return Dim::undefined();
    return Dim(floor_quotient(a.constant_, b.constant_));
  }
  // A single-term divisor takes its multiples out of the sum: (k*x + r)/k = x + r/k.
  const Dim::Terms divisor = b.terms();
  if (divisor.size() == 1 && divisor[0].coefficient > 0) {
    Dim::Terms quotient, rest;
    for (Dim::Term& term : a.terms()) {
      std::vector<Dim::Atom> left;
      std::ranges::set_difference(term.factors, divisor[0].factors, std::back_inserter(left));
      const bool contains = left.size() + divisor[0].factors.size() == term.factors.size();
      if (contains && term.coefficient % divisor[0].coefficient == 0) {
        quotient.push_back({std::move(left), term.coefficient / divisor[0].coefficient});
        continue;
      }
      // Of a number, what is left is at least 0 and below the divisor: (h - 3)/2 = (h + 1)/2 - 2.
      if (contains && term.factors.empty()) {
        const std::int64_t whole = floor_quotient(term.coefficient, divisor[0].coefficient);
        if (whole != 0) quotient.push_back({{}, whole});
        term.coefficient -= whole * divisor[0].coefficient;
      }
      rest.push_back(std::move(term));
    }
    if (rest.empty()) return Dim::of(std::move(quotient));
    if (!quotient.empty()) return Dim::of(std::move(quotient)) + floor_div(Dim::of(rest), b);
  }
  // (x/c)/b = x/(c*b) for positive numbers.
  if (b.terms_ == nullptr && b.constant_ > 0) {
    const std::vector<Dim::Operation> operations = a.operations();
    if (!operations.empty() && operations[0].whole == a && operations[0].op == Dim::Op::FloorDiv &&
        operations[0].b.constant().value_or(0) > 0)
      return floor_div(operations[0].a, operations[0].b * b);
  }
  return Dim::Atom::of(Dim::Atom::Kind::FloorDiv, a, b);
}

Dim ceil_div(const Dim& a, const Dim& b) {
  return -floor_div(-a, b);
}

Dim mod(const Dim& a, const Dim& b) {
  const Dim quotient = floor_div(a, b);
  if (quotient.is_undefined()) return quotient;
  const Dim remainder = a - quotient * b;
  // Where the quotient did not simplify, the remainder is its own atom, not a - (a/b)*b.
  if (quotient != Dim::Atom::of(Dim::Atom::Kind::FloorDiv, a, b)) return remainder;
  return Dim::Atom::of(Dim::Atom::Kind::Mod, a, b);
}

Dim min(const Dim& a, const Dim& b) {
  if (a.is_undefined() || b.is_undefined()) return Dim::undefined();
  if (a.constant() && b.constant()) return std::min(*a.constant(), *b.constant());
  if ((b - a).least().value_or(-1) >= 0) return a;
  if ((a - b).least().value_or(-1) >= 0) return b;
  return Dim::Atom::of(Dim::Atom::Kind::Min, std::min(a, b), std::max(a, b));
}

Dim max(const Dim& a, const Dim& b) {
  if (a.is_undefined() || b.is_undefined()) return Dim::undefined();
  if (a.constant() && b.constant()) return std::max(*a.constant(), *b.constant());
  if ((a - b).least().value_or(-1) >= 0) return a;
  if ((b - a).least().value_or(-1) >= 0) return b;
  return Dim::Atom::of(Dim::Atom::Kind::Max, std::min(a, b), std::max(a, b));
}

Dim product(const std::vector<Dim>& dims) {
  Dim result = 1;
  for (const Dim& dim : dims) result = result * dim;
  return result;
}

std::strong_ordering Dim::compare(const Terms& a, const Terms& b) {
  return std::lexicographical_compare_three_way(
      a.begin(), a.end(), b.begin(), b.end(), [](const Term& x, const Term& y) {
        if (const auto order = std::lexicographical_compare_three_way(
                x.factors.begin(), x.factors.end(), y.factors.begin(), y.factors.end());
            order != 0)
          return order;
        return x.coefficient <=> y.coefficient;
      });
}

std::strong_ordering operator<=>(const Dim& a, const Dim& b) {
  if (a.terms_ == nullptr && b.terms_ == nullptr) return a.constant_ <=> b.constant_;
  if (a.terms_ == b.terms_) return std::strong_ordering::equal;
  if (a.terms_ != nullptr && b.terms_ != nullptr) return Dim::compare(*a.terms_, *b.terms_);
  return Dim::compare(a.terms(), b.terms());
}

bool Dim::is_replaced(const Term& term, const Substitution& with) {
  return std::ranges::any_of(term.factors, [&](const Atom& atom) {
    if (atom.kind == Atom::Kind::Symbol) return with(atom.name).has_value();
    for (const auto& side : {&atom.a, &atom.b})
      if (*side != nullptr && (*side)->terms_ != nullptr)
        for (const Term& inner : *(*side)->terms_)
          if (is_replaced(inner, with)) return true;
    return false;
  });
}

Dim Dim::substituted(const Substitution& with) const {
  if (terms_ == nullptr) return *this;
  // Most terms speak of nothing that is replaced.
  Terms kept;
  std::vector<const Term*> changed;
  for (const Term& term : *terms_) {
    if (is_replaced(term, with))
      changed.push_back(&term);
    else
      kept.push_back(term);
  }
  if (changed.empty()) return *this;
  Dim sum = of_merged(std::move(kept));
  for (const Term* each : changed) {
    const Term& term = *each;
    Dim value = term.coefficient;
    for (const Atom& atom : term.factors) {
      const auto put_in = atom.kind == Atom::Kind::Symbol ? with(atom.name) : std::nullopt;
      value =
          value *
          (put_in ? *put_in : atom.remade([&](const Dim& side) { return side.substituted(with); }));
    }
    sum = sum + value;
  }
  return sum;
}

void Dim::collect_symbols(std::set<std::string>& into) const {
  if (terms_ == nullptr) return;
  for (const Term& term : *terms_) {
    for (const Atom& atom : term.factors) {
      if (atom.kind == Atom::Kind::Symbol) into.insert(atom.name);
      if (atom.a != nullptr) atom.a->collect_symbols(into);
      if (atom.b != nullptr) atom.b->collect_symbols(into);
    }
  }
}

std::optional<Dim::Linear> Dim::linear_in(std::string_view symbol) const {
  Terms with, without;
  for (Term& term : terms()) {
    const auto here = std::ranges::find_if(term.factors, [&](const Atom& atom) {
      return atom.kind == Atom::Kind::Symbol && atom.name == symbol;
    });
    if (here == term.factors.end()) {
      without.push_back(std::move(term));
    } else {
      term.factors.erase(here);
      with.push_back(std::move(term));
    }
  }
  const Dim factor = of(std::move(with)), rest = of(std::move(without));
  std::set<std::string> left;
  factor.collect_symbols(left);
  rest.collect_symbols(left);
  if (left.contains(std::string(symbol)) || factor.is(0)) return std::nullopt;
  return Linear{std::make_shared<const Dim>(factor), std::make_shared<const Dim>(rest)};
}

std::vector<Dim::Part> Dim::parts() const {
  std::vector<Part> result;
  for (Term& term : terms()) {
    const std::int64_t coefficient = std::exchange(term.coefficient, 1);
    result.push_back({coefficient, of({std::move(term)})});
  }
  return result;
}

std::vector<Dim> Dim::factors() const {
  std::vector<Dim> result;
  for (const Term& term : terms())
    for (const Atom& atom : term.factors) result.push_back(of({{{atom}, 1}}));
  return result;
}

std::vector<Dim::Operation> Dim::operations() const {
  std::vector<Operation> result;
  if (terms_ == nullptr) return result;
  for (const Term& term : *terms_) {
    for (const Atom& atom : term.factors) {
      if (atom.a == nullptr || atom.b == nullptr) continue;
      const Op op = atom.kind == Atom::Kind::FloorDiv ? Op::FloorDiv
                    : atom.kind == Atom::Kind::Mod    ? Op::Mod
                    : atom.kind == Atom::Kind::Min    ? Op::Min
                                                      : Op::Max;
      result.push_back({op, of_atom(Atom(atom)), *atom.a, *atom.b});
      for (const auto& side : {atom.a, atom.b})
        for (Operation& inner : side->operations()) result.push_back(std::move(inner));
    }
  }
  return result;
}

Dim Dim::replaced(const Dim& atom, const Dim& by) const {
  if (terms_ == nullptr) return *this;
  TESSERA_CHECK(atom.terms_ != nullptr && atom.terms_->size() == 1 &&
                    atom.terms_->front().factors.size() == 1,
                "{} is no atom", atom.to_string());
  const Atom& wanted = atom.terms_->front().factors.front();
  Dim sum = 0;
  for (const Term& term : *terms_) {
    Dim value = term.coefficient;
    for (const Atom& factor : term.factors)
      value = value * (factor == wanted ? by : factor.remade([&](const Dim& side) {
                return side.replaced(atom, by);
              }));
    sum = sum + value;
  }
  return sum;
}

bool Dim::contains(std::string_view symbol) const {
  if (terms_ == nullptr) return false;
  return std::ranges::any_of(*terms_, [&](const Term& term) {
    return std::ranges::any_of(term.factors, [&](const Atom& atom) {
      if (atom.kind == Atom::Kind::Symbol) return atom.name == symbol;
      return atom.a != nullptr && (atom.a->contains(symbol) || atom.b->contains(symbol));
    });
  });
}

std::uint64_t Dim::fingerprint(const Values& values) const {
  if (terms_ == nullptr) return static_cast<std::uint64_t>(constant_);
  std::uint64_t sum = 0;
  for (const Term& term : *terms_) {
    auto product = static_cast<std::uint64_t>(term.coefficient);
    for (const Atom& atom : term.factors) {
      if (atom.kind == Atom::Kind::Symbol) {
        product *= values(atom.name);
        continue;
      }
      Hasher hasher;
      hasher.add(static_cast<std::uint64_t>(atom.kind));
      if (atom.a != nullptr) {
        const std::uint64_t a = atom.a->fingerprint(values), b = atom.b->fingerprint(values);
        const bool ordered = atom.kind == Atom::Kind::FloorDiv || atom.kind == Atom::Kind::Mod;
        hasher.add(ordered ? a : a + b);  // which side comes first hangs on the names
        hasher.add(ordered ? b : a * b);
      }
      product *= hasher.value();
    }
    sum += product;
  }
  return sum;
}

std::optional<std::int64_t> Dim::least(const Atom& atom) {
  if (atom.kind == Atom::Kind::Symbol) return 0;
  if (atom.kind == Atom::Kind::Undefined) return std::nullopt;
  const std::optional<std::int64_t> a = atom.a->least(), b = atom.b->least();
  switch (atom.kind) {
    case Atom::Kind::FloorDiv:
      // The quotient is nearest to 0 for the largest divisor, furthest from it for the smallest.
      if (!a || !b || *b < 0) return std::nullopt;
      return *a >= 0 ? 0 : floor_quotient(*a, std::max<std::int64_t>(*b, 1));
    case Atom::Kind::Mod: return b && *b >= 0 ? std::optional<std::int64_t>(0) : std::nullopt;
    case Atom::Kind::Min: return a && b ? std::optional(std::min(*a, *b)) : std::nullopt;
    case Atom::Kind::Max: return a && b ? std::max(*a, *b) : a ? a : b;
    case Atom::Kind::Symbol:
    case Atom::Kind::Undefined: break;
  }
  return std::nullopt;
}

std::optional<std::int64_t> Dim::least() const {
  std::int64_t sum = 0;
  for (const Term& term : terms()) {
    std::int64_t product = term.coefficient;
    for (const Atom& atom : term.factors) {
      const std::optional<std::int64_t> factor = least(atom);
      const bool grows =
          term.coefficient > 0 && factor && (*factor >= 0 || term.factors.size() == 1);
      if (!grows || __builtin_mul_overflow(product, *factor, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::size_t Dim::hash() const {
  Hasher hasher;
  if (terms_ == nullptr) {
    hasher.add(static_cast<std::uint64_t>(constant_));
  } else {
    hasher.add_text(to_string());
  }
  return hasher.value();
}

std::string Dim::to_string() const {
  if (terms_ == nullptr) return std::to_string(constant_);
  std::string text;
  // The constant reads best at the end.
  Terms ordered = *terms_;
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const Term& term) { return !term.factors.empty(); });
  for (const Term& term : ordered) {
    const bool negative = term.coefficient < 0;
    if (text.empty())
      text += negative ? "-" : "";
    else
      text += negative ? " - " : " + ";
    const std::uint64_t magnitude = negative ? 0 - static_cast<std::uint64_t>(term.coefficient)
                                             : static_cast<std::uint64_t>(term.coefficient);
    bool first = true;
    if (magnitude != 1 || term.factors.empty()) {
      text += std::to_string(magnitude);
      first = false;
    }
    for (const Atom& atom : term.factors) {
      if (!first) text += "*";
      first = false;
      const auto call = [&](const char* name) {
        text += fmt::format("{}({}, {})", name, atom.a->to_string(), atom.b->to_string());
      };
      switch (atom.kind) {
        case Atom::Kind::Symbol:
          text += atom.name == kUndefined ? quoted_text(atom.name, '\'') : name_text(atom.name);
          break;
        case Atom::Kind::FloorDiv: call("floor_div"); break;
        case Atom::Kind::Mod: call("mod"); break;
        case Atom::Kind::Min: call("min"); break;
        case Atom::Kind::Max: call("max"); break;
        case Atom::Kind::Undefined: text += kUndefined; break;
      }
    }
  }
  return text;
}

}  // namespace tessera
