#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Symbolic size of an axis: an integer, or arithmetic over named sizes.
///
/// Kept in a canonical form, a polynomial with integer coefficients over atoms (a symbol, or a
/// floor division, remainder, minimum or maximum that did not simplify), so that equal expressions
/// compare equal: `n*2 + n` is `3*n`, `(4*h)/2` is `2*h`. Symbols stand for integers >= 0.
///
/// Arithmetic that overflows 64 bits, or divides by zero, gives `undefined`, which propagates like
/// NaN.
///
/// Interned (hash consing): equal expressions are one object, which is never freed, so that they
/// compare by address and hash in constant time.
class Dim {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a number is a size
  Dim(std::int64_t value = 0) : constant_(value) {}
  static Dim symbol(std::string name);
  static Dim undefined();

  std::optional<std::int64_t> constant() const {
    return terms_ == nullptr ? std::optional(constant_) : std::nullopt;
  }
  bool is(std::int64_t value) const { return terms_ == nullptr && constant_ == value; }
  bool is_undefined() const;
  /// Name of the symbol if this is a single symbol.
  std::optional<std::string_view> as_symbol() const;

  /// Replacement of symbols; a symbol for which `with` returns nothing stays.
  using Substitution = std::function<std::optional<Dim>(std::string_view)>;
  Dim substituted(const Substitution& with) const;
  void collect_symbols(std::set<std::string>& into) const;
  using SymbolPredicate = std::function<bool(std::string_view)>;
  bool any_symbol(const SymbolPredicate& predicate) const;

  /// Lower bound by interval arithmetic, if there is one.
  std::optional<std::int64_t> least() const;

  /// Decomposition as factor * symbol + rest, where neither contains the symbol; nothing if there
  /// is none.
  struct Linear;
  std::optional<Linear> linear_in(std::string_view symbol) const;

  /// Terms of the polynomial: a coefficient and a product of atoms each. A constant is a multiple
  /// of 1.
  struct Part;
  std::vector<Part> parts() const;
  /// Atoms of a product without a coefficient.
  std::vector<Dim> factors() const;
  /// Atoms that are operations rather than symbols, outer ones first.
  enum class Op : std::uint8_t { FloorDiv, Mod, Min, Max };
  struct Operation;
  std::vector<Operation> operations() const;
  /// Replaces `atom` (an operation or a symbol) wherever it occurs.
  Dim replaced(const Dim& atom, const Dim& by) const;
  bool contains(std::string_view symbol) const;
  /// Hash that respects equality: the value modulo 2^64 for given values of the symbols, where
  /// operations mix the fingerprints of their operands.
  using Values = std::function<std::uint64_t(std::string_view)>;
  std::uint64_t fingerprint(const Values& values) const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  Dim operator-() const { return Dim(0) - *this; }

  /// Division that rounds towards minus infinity, and its remainder, which has the sign of the
  /// divisor.
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);

  friend std::strong_ordering operator<=>(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);
  std::size_t hash() const;
  /// Address of the interned expression: the same for equal sizes, null for a constant.
  const void* id() const { return terms_.get(); }

  /// Text form, as in `2*n*m + floor_div(h + 1, 2) - 1`; symbols that are not identifiers are
  /// quoted: `'batch size'`.
  std::string to_string() const;

 private:
  struct Node;
  class Atom;
  struct Term;
  class Terms;
  enum class Kind : std::uint8_t;

  static Dim of(Terms terms);
  static Dim of_merged(Terms terms);
  static Dim of_operation(Kind kind, const Dim& a, const Dim& b);
  static Dim of_atom(Atom atom);
  static Dim remade(const Node& node, const Dim& a, const Dim& b);
  static Dim sum(const Dim& a, const Dim& b, std::int64_t times);
  static std::optional<std::int64_t> least(const Atom& atom);
  const Terms& terms(Terms& lone) const;
  const Node* as_atom() const;
  bool is_operation(Kind kind, const Dim& a, const Dim& b) const;
  template <class Change>
  Dim changed(const Change& change) const;

  std::int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;  // interned, not counted; null for a constant
};

struct Dim::Linear {
  Dim factor, rest;
};

struct Dim::Part {
  std::int64_t coefficient;
  Dim product;
};

struct Dim::Operation {
  Op op;
  Dim whole, a, b;
};

Dim floor_div(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
Dim product(const std::vector<Dim>& dims);

}  // namespace tessera
