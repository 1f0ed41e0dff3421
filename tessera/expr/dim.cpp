#include "tessera/expr/dim.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "tessera/support/check.h"
#include "tessera/support/hash.h"
#include "tessera/support/intern_table.h"
#include "tessera/support/lexer.h"
#include "tessera/support/small_vector.h"

namespace tessera {

enum class Dim::Kind : std::uint8_t { Symbol, FloorDiv, Mod, Min, Max, Undefined };

namespace {

/// Bit of a symbol in the set of symbols of a size, a Bloom filter of one word.
std::uint64_t symbol_bit(std::string_view name) {
  std::uint64_t mixed = name.size();
  for (std::size_t i = name.size() < 4 ? 0 : name.size() - 4; i < name.size(); ++i)
    mixed = mixed * 31 + static_cast<unsigned char>(name[i]);
  return std::uint64_t{1} << (mixed % 64);
}

/// The first bytes of a name as a number: where two differ, they are ordered as the names are.
std::uint64_t prefix_of(std::string_view name) {
  std::uint64_t prefix = 0;
  for (std::size_t i = 0; i < sizeof prefix; ++i)
    prefix = prefix << 8 | (i < name.size() ? static_cast<unsigned char>(name[i]) : 0);
  return prefix;
}

}  // namespace

/// Content of an atom: a symbol or an operation on two dimensions; interned, as sizes are.
struct Dim::Node {
  Kind kind = Kind::Symbol;
  std::string name = {};      // of a symbol
  Dim a = {}, b = {};         // of an operation
  Dim whole = {};             // the atom as a size
  std::size_t weight = 1;     // how many atoms it is made of
  std::uint64_t hash = 0;     // that of the name or of the operands
  std::uint64_t symbols = 0;  // their bits
  std::uint64_t prefix = 0;   // of the name of a symbol

  bool is_operation() const { return kind != Kind::Symbol && kind != Kind::Undefined; }
};

class Dim::Atom {
 public:
  explicit Atom(const Node& node) : node_(&node) {}

  const Node* operator->() const { return node_; }

  std::strong_ordering operator<=>(const Atom& other) const {
    const Node &x = *node_, &y = *other.node_;
    if (&x == &y) return std::strong_ordering::equal;
    if (const auto order = x.kind <=> y.kind; order != 0) return order;
    if (x.kind == Kind::Symbol)
      return x.prefix != y.prefix ? x.prefix <=> y.prefix : x.name <=> y.name;
    if (const auto order = x.a <=> y.a; order != 0) return order;
    return x.b <=> y.b;
  }
  bool operator==(const Atom& other) const = default;

 private:
  const Node* node_;
};

/// coefficient * product of the factors, which are sorted and may repeat. No factor: a constant.
struct Dim::Term {
  SmallVector<Atom, 2> factors = {};
  std::int64_t coefficient = 0;
};

/// Most sizes of a proof have three or four terms, such as `n - 1 - %i0`.
class Dim::Terms : public SmallVector<Term, 4> {
 public:
  using SmallVector::SmallVector;

  /// Dim of sorted terms with distinct products.
  static Dim dim_of(Terms merged);
  /// Dim of a product of sorted atoms.
  static Dim product_of(const SmallVector<Atom, 2>& factors);
  static Dim multiple_of(const Terms& of, std::int64_t by);
  /// A node with itself as a size.
  static std::unique_ptr<const Node> atomic(std::unique_ptr<Node> node);

  // Properties of the interned polynomial, not set while it is built:
  std::uint64_t symbols = 0;  // bits of those that occur
  std::uint64_t hash = 0;
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

/// Number of atoms of the expanded terms.
template <class Terms>
std::size_t weight(const Terms& terms) {
  std::size_t sum = 0;
  for (const auto& term : terms)
    for (const auto& factor : term.factors) sum += factor->weight;
  return sum;
}

template <class Factors>
std::strong_ordering compare_factors(const Factors& x, const Factors& y) {
  return std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end());
}

/// Cache of recent operations on sizes, by thread: one proof adds and subtracts the same sizes
/// again and again.
class OperationCache {
 public:
  enum class Operation : std::uint8_t { Add, Subtract, Multiply };

  static OperationCache& of_thread() {
    thread_local OperationCache cache;
    return cache;
  }
  template <class Compute>
  Dim result(Operation operation, const Dim& a, const Dim& b, const Compute& compute) {
    const auto word = [](const Dim& dim) {
      return dim.id() == nullptr ? static_cast<std::uint64_t>(*dim.constant()) << 4
                                 : reinterpret_cast<std::uintptr_t>(dim.id());
    };
    const std::uint64_t mixed =
        (word(a) + static_cast<std::uint64_t>(operation)) * 0x9e3779b97f4a7c15ull ^
        word(b) * 0xc2b2ae3d27d4eb4full;
    Entry& entry = entries_[mixed >> (64 - kBits)];
    if (entry.operation != operation || entry.a != a || entry.b != b)
      entry = {a, b, compute(), operation};
    return entry.result;
  }

 private:
  static constexpr int kBits = 11;
  struct Entry {
    Dim a = 0, b = 0, result = 0;  // 0 + 0 is 0
    Operation operation = Operation::Add;
  };
  std::vector<Entry> entries_ = std::vector<Entry>(1 << kBits);
};

}  // namespace

Dim Dim::of(Terms terms) {
  const auto before = [](const Term& x, const Term& y) {
    return compare_factors(x.factors, y.factors) < 0;
  };
  const auto unordered = [&](const Term& x, const Term& y) { return !before(x, y); };
  if (std::ranges::adjacent_find(terms, unordered) == terms.end())
    return of_merged(std::move(terms));
  std::ranges::sort(terms, before);
  Terms merged;
  merged.reserve(terms.size());
  for (Term& term : terms) {
    if (!merged.empty() && std::ranges::equal(merged.back().factors, term.factors)) {
      if (__builtin_add_overflow(merged.back().coefficient, term.coefficient,
                                 &merged.back().coefficient))
        return undefined();
    } else {
      merged.push_back(std::move(term));
    }
  }
  return of_merged(std::move(merged));
}

/// Dim of sorted terms with distinct products.
Dim Dim::of_merged(Terms merged) {
  return Terms::dim_of(std::move(merged));
}

Dim Dim::Terms::dim_of(Terms merged) {
  static InternTable<Terms>& table = *new InternTable<Terms>;
  merged.erase_if([](const Term& term) { return term.coefficient == 0; });
  if (merged.empty()) return Dim(0);
  if (merged.size() == 1 && merged.front().factors.empty()) return Dim(merged.front().coefficient);
  constexpr std::size_t kHeaviest =
      1000;  // atoms share their parts: written out they could explode
  std::size_t weight = 0;
  Hasher hasher;
  for (const Term& term : merged) {
    for (const Atom& atom : term.factors) {
      weight += atom->weight;
      merged.symbols |= atom->symbols;
      hasher.add(atom->hash);
    }
    hasher.add(static_cast<std::uint64_t>(term.coefficient));
  }
  if (weight > kHeaviest) return undefined();
  merged.hash = hasher.value();
  const auto is_same = [&](const Terms& other) {
    return std::ranges::equal(merged, other, [](const Term& x, const Term& y) {
      return x.coefficient == y.coefficient && std::ranges::equal(x.factors, y.factors);
    });
  };
  const Terms& interned = table.find_or_add(
      merged.hash, is_same, [&] { return std::make_unique<Terms>(std::move(merged)); });
  Dim result;
  result.terms_ = {std::shared_ptr<void>(), &interned};  // not counted: it is never freed
  return result;
}

Dim Dim::Terms::product_of(const SmallVector<Atom, 2>& factors) {
  if (factors.empty()) return 1;
  if (factors.size() == 1) return of_atom(factors.front());
  Terms terms;
  terms.emplace_back(factors, 1);
  return dim_of(std::move(terms));
}

std::unique_ptr<const Dim::Node> Dim::Terms::atomic(std::unique_ptr<Node> node) {
  Terms terms;
  terms.emplace_back();
  terms.back().factors.emplace_back(*node);
  terms.back().coefficient = 1;
  node->whole = dim_of(std::move(terms));
  return node;
}

Dim Dim::of_atom(Atom atom) {
  return atom->whole;
}

/// Atom of an operation that did not simplify.
Dim Dim::of_operation(Kind kind, const Dim& a, const Dim& b) {
  static InternTable<Node>& table = *new InternTable<Node>;
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(kind));
  hasher.add(a.hash());
  hasher.add(b.hash());
  const auto is_same = [&](const Node& node) {
    return node.kind == kind && node.a == a && node.b == b;
  };
  const auto make = [&] {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->a = a;
    node->b = b;
    node->hash = hasher.value();
    for (const Dim* side : {&a, &b})
      if (side->terms_ != nullptr) {
        node->weight += weight(*side->terms_);
        node->symbols |= side->terms_->symbols;
      }
    return Terms::atomic(std::move(node));
  };
  return table.find_or_add(hasher.value(), is_same, make).whole;
}

Dim Dim::symbol(std::string name) {
  static InternTable<Node>& table = *new InternTable<Node>;
  Hasher hasher;
  hasher.add_text(name);
  const auto make = [&] {
    auto node = std::make_unique<Node>();
    node->name = name;
    node->hash = hasher.value();
    node->symbols = symbol_bit(name);
    node->prefix = prefix_of(name);
    return Terms::atomic(std::move(node));
  };
  return table
      .find_or_add(
          hasher.value(), [&](const Node& node) { return node.name == name; }, make)
      .whole;
}

Dim Dim::undefined() {
  static const Node& node =
      *Terms::atomic(std::make_unique<Node>(Node{.kind = Kind::Undefined})).release();
  return node.whole;
}

/// Terms of the polynomial; those of a constant are built in `lone`.
const Dim::Terms& Dim::terms(Terms& lone) const {
  if (terms_ != nullptr) return *terms_;
  if (constant_ != 0) lone.push_back({.coefficient = constant_});
  return lone;
}

bool Dim::is_undefined() const {
  return terms_ != nullptr && terms_->size() == 1 && terms_->front().factors.size() == 1 &&
         terms_->front().factors.front()->kind == Kind::Undefined;
}

/// Whether this is exactly one operation.
bool Dim::is_operation(Kind kind, const Dim& a, const Dim& b) const {
  const Node* node = as_atom();
  return node != nullptr && node->kind == kind && node->a == a && node->b == b;
}

/// The atom, if this is exactly one atom.
const Dim::Node* Dim::as_atom() const {
  if (terms_ == nullptr || terms_->size() != 1) return nullptr;
  const Term& term = terms_->front();
  if (term.coefficient != 1 || term.factors.size() != 1) return nullptr;
  return term.factors.front().operator->();
}

std::optional<std::string_view> Dim::as_symbol() const {
  const Node* node = as_atom();
  if (node == nullptr || node->kind != Kind::Symbol) return std::nullopt;
  return node->name;
}

Dim Dim::Terms::multiple_of(const Terms& of, std::int64_t by) {
  Terms terms = of;
  for (Term& term : terms)
    if (__builtin_mul_overflow(term.coefficient, by, &term.coefficient)) return undefined();
  return Terms::dim_of(std::move(terms));
}

/// a + b * times, a merge of two sorted lists of terms.
Dim Dim::sum(const Dim& a, const Dim& b, std::int64_t times) {
  if (a.terms_ == nullptr && b.terms_ == nullptr) {
    const __int128 sum = __int128{a.constant_} + __int128{b.constant_} * times;
    const auto narrow = static_cast<std::int64_t>(sum);
    return narrow == sum ? Dim(narrow) : undefined();
  }
  if (b.is(0)) return a;
  if (a.is(0) && times == 1) return b;
  if (a.is_undefined() || b.is_undefined()) return undefined();
  if (a.is(0)) return Terms::multiple_of(*b.terms_, times);
  Terms lone, merged;
  const Terms &left = a.terms(lone), &right = b.terms(lone);
  merged.reserve(left.size() + right.size());
  const Term* x = left.begin();
  for (const Term& y : right) {
    std::strong_ordering order = std::strong_ordering::greater;
    while (x != left.end() && (order = compare_factors(x->factors, y.factors)) < 0)
      merged.emplace_back(*x++);
    std::int64_t coefficient = 0;
    if (__builtin_mul_overflow(y.coefficient, times, &coefficient)) return undefined();
    if (x != left.end() && order == 0) {
      if (__builtin_add_overflow(x->coefficient, coefficient, &coefficient)) return undefined();
      ++x;
    }
    if (coefficient != 0) merged.emplace_back(y.factors, coefficient);
  }
  merged.append(x, left.end());
  return Terms::dim_of(std::move(merged));
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.terms_ == nullptr && b.terms_ == nullptr) return Dim::sum(a, b, 1);
  return OperationCache::of_thread().result(OperationCache::Operation::Add, a, b,
                                            [&] { return Dim::sum(a, b, 1); });
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.terms_ == nullptr && b.terms_ == nullptr) return Dim::sum(a, b, -1);
  return OperationCache::of_thread().result(OperationCache::Operation::Subtract, a, b,
                                            [&] { return Dim::sum(a, b, -1); });
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
  const Dim::Terms &left = *a.terms_, &right = *b.terms_;
  if (left.size() * right.size() > kMostTerms) return Dim::undefined();
  const auto expanded = [&] {
    Dim::Terms terms;
    terms.reserve(left.size() * right.size());
    for (const Dim::Term& x : left) {
      for (const Dim::Term& y : right) {
        Dim::Term term;
        if (x.factors.size() + y.factors.size() > 64) return Dim::undefined();
        term.factors.reserve(x.factors.size() + y.factors.size());
        std::ranges::merge(x.factors, y.factors, std::back_inserter(term.factors));
        if (__builtin_mul_overflow(x.coefficient, y.coefficient, &term.coefficient))
          return Dim::undefined();
        terms.push_back(std::move(term));
      }
    }
    return Dim::of(std::move(terms));
  };
  return OperationCache::of_thread().result(OperationCache::Operation::Multiply, a, b, expanded);
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
  Dim::Terms lone_a, lone_b;
  const Dim::Terms& divisor = b.terms(lone_b);
  if (divisor.size() == 1 && divisor[0].coefficient > 0) {
    Dim::Terms quotient, rest;
    for (Dim::Term term : a.terms(lone_a)) {
      SmallVector<Dim::Atom, 2> left;
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
    if (!quotient.empty())
      return Dim::of(std::move(quotient)) + floor_div(Dim::of(std::move(rest)), b);
  }
  // (x/c)/b = x/(c*b) for positive numbers.
  if (b.terms_ == nullptr && b.constant_ > 0) {
    const Dim::Node* inner = a.as_atom();
    if (inner != nullptr && inner->kind == Dim::Kind::FloorDiv &&
        inner->b.constant().value_or(0) > 0)
      return floor_div(inner->a, inner->b * b);
  }
  return Dim::of_operation(Dim::Kind::FloorDiv, a, b);
}

Dim ceil_div(const Dim& a, const Dim& b) {
  return -floor_div(-a, b);
}

Dim mod(const Dim& a, const Dim& b) {
  const Dim quotient = floor_div(a, b);
  if (quotient.is_undefined()) return quotient;
  // Where the quotient did not simplify, the remainder is its own atom, not a - (a/b)*b.
  if (!quotient.is_operation(Dim::Kind::FloorDiv, a, b)) return a - quotient * b;
  return Dim::of_operation(Dim::Kind::Mod, a, b);
}

Dim min(const Dim& a, const Dim& b) {
  if (a.is_undefined() || b.is_undefined()) return Dim::undefined();
  if (a.constant() && b.constant()) return std::min(*a.constant(), *b.constant());
  if ((b - a).least().value_or(-1) >= 0) return a;
  if ((a - b).least().value_or(-1) >= 0) return b;
  return Dim::of_operation(Dim::Kind::Min, std::min(a, b), std::max(a, b));
}

Dim max(const Dim& a, const Dim& b) {
  if (a.is_undefined() || b.is_undefined()) return Dim::undefined();
  if (a.constant() && b.constant()) return std::max(*a.constant(), *b.constant());
  if ((a - b).least().value_or(-1) >= 0) return a;
  if ((b - a).least().value_or(-1) >= 0) return b;
  return Dim::of_operation(Dim::Kind::Max, std::min(a, b), std::max(a, b));
}

Dim product(const std::vector<Dim>& dims) {
  Dim result = 1;
  for (const Dim& dim : dims) result = result * dim;
  return result;
}

std::strong_ordering operator<=>(const Dim& a, const Dim& b) {
  if (a.terms_ == b.terms_)
    return a.terms_ == nullptr ? a.constant_ <=> b.constant_ : std::strong_ordering::equal;
  Dim::Terms lone;  // at most one of them is a constant
  const Dim::Terms &left = a.terms(lone), &right = b.terms(lone);
  return std::lexicographical_compare_three_way(
      left.begin(), left.end(), right.begin(), right.end(),
      [](const Dim::Term& x, const Dim::Term& y) {
        const auto order = compare_factors(x.factors, y.factors);
        return order != 0 ? order : x.coefficient <=> y.coefficient;
      });
}

/// Equal sizes are one interned object.
bool operator==(const Dim& a, const Dim& b) {
  return a.terms_ == b.terms_ && a.constant_ == b.constant_;
}

/// Rebuilds an operation with other operands.
Dim Dim::remade(const Node& node, const Dim& a, const Dim& b) {
  switch (node.kind) {
    case Kind::FloorDiv: return floor_div(a, b);
    case Kind::Mod: return mod(a, b);
    case Kind::Min: return min(a, b);
    case Kind::Max: return max(a, b);
    case Kind::Symbol:
    case Kind::Undefined: break;
  }
  return undefined();
}

Dim Dim::substituted(const Substitution& with) const {
  return changed([&](const Atom& atom) -> std::optional<Dim> {
    if (atom->kind == Kind::Symbol) return with(atom->name);
    return std::nullopt;
  });
}

/// Replaces atoms by what `change` returns for them, also inside of operations.
template <class Change>
Dim Dim::changed(const Change& change) const {
  if (terms_ == nullptr) return *this;
  const auto changed_atom = [&](const Atom& atom) -> std::optional<Dim> {
    if (auto other = change(atom)) return other;
    if (!atom->is_operation()) return std::nullopt;
    const Dim a = atom->a.changed(change), b = atom->b.changed(change);
    if (a == atom->a && b == atom->b) return std::nullopt;
    return remade(*atom.operator->(), a, b);
  };
  if (as_atom() != nullptr) {
    auto other = changed_atom(terms_->front().factors.front());
    return other ? *std::move(other) : *this;
  }
  SmallVector<std::pair<const Atom*, Dim>, 2> replaced;
  for (const Term& term : *terms_)
    for (const Atom& atom : term.factors)
      if (auto other = changed_atom(atom)) replaced.emplace_back(&atom, *std::move(other));
  if (replaced.empty()) return *this;
  Terms kept;
  SmallVector<Dim, 2> others;
  bool any_atom = false;  // an atom became another, as variables do that are renamed
  auto* next = replaced.begin();
  for (const Term& term : *terms_) {
    Term same{.coefficient = term.coefficient};
    SmallVector<Dim, 2> put_in;
    bool atoms = false;
    for (const Atom& atom : term.factors) {
      if (next == replaced.end() || next->first != &atom) {
        same.factors.push_back(atom);
        continue;
      }
      Dim& other = (next++)->second;
      if (other.as_atom() != nullptr && !other.is_undefined()) {
        same.factors.push_back(other.terms_->front().factors.front());
        atoms = true;
      } else {
        put_in.push_back(std::move(other));
      }
    }
    if (atoms) std::ranges::sort(same.factors);
    if (put_in.empty()) {
      any_atom = any_atom || atoms;
      kept.push_back(std::move(same));
      continue;
    }
    Dim value = of_merged({std::move(same)});
    for (const Dim& factor : put_in) value = value * factor;
    others.push_back(std::move(value));
  }
  Dim sum = any_atom ? of(std::move(kept)) : of_merged(std::move(kept));
  for (const Dim& value : others) sum = sum + value;
  return sum;
}

bool Dim::any_symbol(const SymbolPredicate& predicate) const {
  return terms_ != nullptr && std::ranges::any_of(*terms_, [&](const Term& term) {
           return std::ranges::any_of(term.factors, [&](const Atom& atom) {
             if (atom->kind == Kind::Symbol) return predicate(atom->name);
             return atom->a.any_symbol(predicate) || atom->b.any_symbol(predicate);
           });
         });
}

void Dim::collect_symbols(std::set<std::string>& into) const {
  any_symbol([&](std::string_view name) {
    into.insert(std::string(name));  // looks before it makes a node
    return false;
  });
}

bool Dim::contains(std::string_view symbol) const {
  if (terms_ == nullptr || (terms_->symbols & symbol_bit(symbol)) == 0) return false;
  return std::ranges::any_of(*terms_, [&](const Term& term) {
    return std::ranges::any_of(term.factors, [&](const Atom& atom) {
      if (atom->kind == Kind::Symbol) return atom->name == symbol;
      return atom->a.contains(symbol) || atom->b.contains(symbol);
    });
  });
}

std::optional<Dim::Linear> Dim::linear_in(std::string_view symbol) const {
  if (!contains(symbol)) return std::nullopt;
  if (as_symbol() == symbol) return Linear{1, 0};
  Terms with, without;
  for (const Term& term : *terms_) {
    const Atom* here = std::ranges::find_if(term.factors, [&](const Atom& atom) {
      return atom->kind == Kind::Symbol && atom->name == symbol;
    });
    if (here == term.factors.end()) {
      without.emplace_back(term);
      continue;
    }
    with.emplace_back(term);
    with.back().factors.erase(with.back().factors.begin() + (here - term.factors.begin()));
  }
  if (with.empty()) return std::nullopt;
  const bool is_number = with.size() == 1 && with.front().factors.empty();
  Linear linear{is_number ? Dim(with.front().coefficient) : of(std::move(with)),
                Terms::dim_of(std::move(without))};
  if (linear.factor.contains(symbol) || linear.rest.contains(symbol) || linear.factor.is(0))
    return std::nullopt;
  return linear;
}

std::vector<Dim::Part> Dim::parts() const {
  std::vector<Part> result;
  Terms lone;
  const Terms& all = terms(lone);
  result.reserve(all.size());
  for (const Term& term : all)
    result.push_back({term.coefficient, Terms::product_of(term.factors)});
  return result;
}

std::vector<Dim> Dim::factors() const {
  std::vector<Dim> result;
  if (terms_ == nullptr) return result;
  for (const Term& term : *terms_)
    for (const Atom& atom : term.factors) result.push_back(of_atom(atom));
  return result;
}

std::vector<Dim::Operation> Dim::operations() const {
  std::vector<Operation> result;
  if (terms_ == nullptr) return result;
  for (const Term& term : *terms_) {
    for (const Atom& atom : term.factors) {
      if (!atom->is_operation()) continue;
      const Op op = atom->kind == Kind::FloorDiv ? Op::FloorDiv
                    : atom->kind == Kind::Mod    ? Op::Mod
                    : atom->kind == Kind::Min    ? Op::Min
                                                 : Op::Max;
      result.push_back({op, of_atom(atom), atom->a, atom->b});
      for (const Dim* side : {&atom->a, &atom->b})
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
  return changed([&](const Atom& factor) -> std::optional<Dim> {
    if (factor == wanted) return by;
    return std::nullopt;
  });
}

std::uint64_t Dim::fingerprint(const Values& values) const {
  if (terms_ == nullptr) return static_cast<std::uint64_t>(constant_);
  std::uint64_t sum = 0;
  for (const Term& term : *terms_) {
    auto product = static_cast<std::uint64_t>(term.coefficient);
    for (const Atom& atom : term.factors) {
      if (atom->kind == Kind::Symbol) {
        product *= values(atom->name);
        continue;
      }
      Hasher hasher;
      hasher.add(static_cast<std::uint64_t>(atom->kind));
      if (atom->is_operation()) {
        const std::uint64_t a = atom->a.fingerprint(values), b = atom->b.fingerprint(values);
        const bool ordered = atom->kind == Kind::FloorDiv || atom->kind == Kind::Mod;
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
  if (atom->kind == Kind::Symbol) return 0;
  if (atom->kind == Kind::Undefined) return std::nullopt;
  const std::optional<std::int64_t> a = atom->a.least(), b = atom->b.least();
  switch (atom->kind) {
    case Kind::FloorDiv:
      // The quotient is nearest to 0 for the largest divisor, furthest from it for the smallest.
      if (!a || !b || *b < 0) return std::nullopt;
      return *a >= 0 ? 0 : floor_quotient(*a, std::max<std::int64_t>(*b, 1));
    case Kind::Mod: return b && *b >= 0 ? std::optional<std::int64_t>(0) : std::nullopt;
    case Kind::Min: return a && b ? std::optional(std::min(*a, *b)) : std::nullopt;
    case Kind::Max: return a && b ? std::max(*a, *b) : a ? a : b;
    case Kind::Symbol:
    case Kind::Undefined: break;
  }
  return std::nullopt;
}

std::optional<std::int64_t> Dim::least() const {
  if (terms_ == nullptr) return constant_;
  std::int64_t sum = 0;
  for (const Term& term : *terms_) {
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
  if (terms_ != nullptr) return terms_->hash;
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(constant_));
  return hasher.value();
}

std::string Dim::to_string() const {
  if (terms_ == nullptr) return std::to_string(constant_);
  std::string text;
  const auto add = [&](const Term& term) {
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
        text += fmt::format("{}({}, {})", name, atom->a.to_string(), atom->b.to_string());
      };
      switch (atom->kind) {
        case Kind::Symbol:
          text += atom->name == kUndefined ? quoted_text(atom->name, '\'') : name_text(atom->name);
          break;
        case Kind::FloorDiv: call("floor_div"); break;
        case Kind::Mod: call("mod"); break;
        case Kind::Min: call("min"); break;
        case Kind::Max: call("max"); break;
        case Kind::Undefined: text += kUndefined; break;
      }
    }
  };
  // The constant, which comes first in order, reads best at the end.
  for (const Term& term : *terms_)
    if (!term.factors.empty()) add(term);
  for (const Term& term : *terms_)
    if (term.factors.empty()) add(term);
  return text;
}

}  // namespace tessera
