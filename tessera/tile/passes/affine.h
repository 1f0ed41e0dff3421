#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tessera/tile/passes/facts.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile {

/// A sum of products of scalar values, exact: nothing wraps.
class Polynomial {
 public:
  Polynomial() = default;
  static Polynomial constant(std::int64_t number);
  static Polynomial value(ValueId scalar);

  /// None where a coefficient leaves 64 bits or there are too many terms to be worth it.
  std::optional<Polynomial> plus(const Polynomial& other, std::int64_t factor = 1) const;
  std::optional<Polynomial> times(const Polynomial& other) const;

  /// The quotient, rounded down, where all but its constant is a multiple; else none.
  std::optional<Polynomial> divided(std::int64_t by) const;

  bool is_zero() const { return terms_.empty(); }
  std::optional<std::int64_t> as_constant() const;
  bool operator==(const Polynomial&) const = default;

  /// What it can be at least, by what is known of its values.
  std::optional<std::int64_t> least(const std::vector<Facts>& facts) const;

  /// Appends what computes it, in i64.
  ValueId emit(Rewrite& out) const;

 private:
  using Product = std::vector<ValueId>;  // in order
  bool add(const Product& product, std::int64_t factor);

  std::map<Product, std::int64_t> terms_;  // factors are not 0
};

/// A tile whose element at (i, j, …) is base + offset + i * strides[0] + j * strides[1] + …, where
/// the base is a scalar pointer, or nothing for integers.
struct Affine {
  std::optional<ValueId> base = {};
  Polynomial offset = {};
  std::vector<Polynomial> strides = {};  // 0 on axes of extent 1
};
/// Whether all elements are equal: every stride is 0.
bool is_uniform(const Affine& x);

/// One bound of a mask: the element is in where `gap` is not negative. `index` is the offset of the
/// side of the comparison that moves along the tile, which the other side bounds.
struct Bound {
  Affine gap = {};
  Polynomial index = {};
};
struct Mask {
  std::vector<Bound> bounds = {};
  std::vector<ValueId> conditions = {};  // scalar truth values
};

/// Reads tiles of one kernel as affine ones.
class AffineForms {
 public:
  explicit AffineForms(const Kernel& kernel);

  /// Of integers or pointers; none where a value is anything else, or may have wrapped.
  std::optional<Affine> tile(ValueId id) const;
  /// Of truth values: a conjunction of bounds.
  std::optional<Mask> mask(ValueId id) const;
  const std::vector<Facts>& facts() const { return facts_; }
  const Operation* definition(ValueId id) const;

 private:
  std::optional<Affine> read(ValueId id) const;
  std::optional<Affine> leaf(ValueId id) const;
  std::optional<Affine> arithmetic(const Operation& op) const;
  std::optional<Affine> moved(const Operation& op, const Affine& x) const;
  std::optional<Mask> read_mask(ValueId id) const;
  std::optional<Bound> comparison(const Operation& op) const;
  bool wraps(const Operation& op) const;

  const Kernel& kernel_;
  std::vector<Facts> facts_;
  std::vector<std::optional<OpId>> definitions_;
  mutable std::map<ValueId, std::optional<Affine>> tiles_;
  mutable std::map<ValueId, std::optional<Mask>> masks_;
  mutable int depth_ = 0;  // of reading; long chains are left alone
};

}  // namespace tessera::tile
