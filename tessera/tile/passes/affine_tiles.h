#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/expr/affine.h"
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

  /// rest + factor * scalar, where neither has the scalar; none where it occurs in a higher power.
  struct Linear;
  std::optional<Linear> linear_in(ValueId scalar) const;
  /// The scalars that it is made of.
  std::vector<ValueId> scalars() const;

  bool is_zero() const { return *this == Polynomial{}; }
  std::optional<std::int64_t> as_constant() const;
  bool operator==(const Polynomial&) const = default;

  /// What it can be at least, by what is known of its values.
  std::optional<std::int64_t> least(const std::vector<Facts>& facts) const;

  /// Appends what computes it, in i64.
  ValueId emit(Rewrite& out) const;

 private:
  using Product = std::vector<ValueId>;  // in order, not empty
  explicit Polynomial(Affine<Product> sum) : sum_(std::move(sum)) {}
  static std::optional<Polynomial> limited(std::optional<Affine<Product>> sum);

  Affine<Product> sum_;
};

struct Polynomial::Linear {
  Polynomial rest = {}, factor = {};
};

/// A tile whose element at (i, j, …) is base + offset + i * strides[0] + j * strides[1] + …, where
/// the base is a scalar pointer, or nothing for integers.
struct AffineTile {
  std::optional<ValueId> base = {};
  Polynomial offset = {};
  std::vector<Polynomial> strides = {};  // 0 on axes of extent 1
};
/// Whether all elements are equal: every stride is 0.
bool is_uniform(const AffineTile& x);

/// One bound of a mask: the element is in where `gap` is not negative. `index` is the offset of the
/// side of the comparison that moves along the tile, which the other side bounds.
struct Bound {
  AffineTile gap = {};
  Polynomial index = {};
};
struct Mask {
  std::vector<Bound> bounds = {};
  std::vector<ValueId> conditions = {};  // scalar truth values
};

/// Reads tiles of one kernel as affine ones.
class AffineTiles {
 public:
  explicit AffineTiles(const Kernel& kernel);

  /// Of integers or pointers; none where a value is anything else, or may have wrapped.
  std::optional<AffineTile> tile(ValueId id) const;
  /// Of truth values: a conjunction of bounds.
  std::optional<Mask> mask(ValueId id) const;
  const std::vector<Facts>& facts() const { return facts_; }
  const Operation* definition(ValueId id) const;

 private:
  std::optional<AffineTile> read(ValueId id) const;
  std::optional<AffineTile> leaf(ValueId id) const;
  std::optional<AffineTile> arithmetic(const Operation& op) const;
  std::optional<AffineTile> moved(const Operation& op, const AffineTile& x) const;
  std::optional<Mask> read_mask(ValueId id) const;
  std::optional<Bound> comparison(const Operation& op) const;
  bool wraps(const Operation& op) const;

  const Kernel& kernel_;
  std::vector<Facts> facts_;
  std::vector<std::optional<OpId>> definitions_;
  mutable std::map<ValueId, std::optional<AffineTile>> tiles_;
  mutable std::map<ValueId, std::optional<Mask>> masks_;
  mutable int depth_ = 0;  // of reading; long chains are left alone
};

}  // namespace tessera::tile
