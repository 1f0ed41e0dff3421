#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/certify/certificate.h"
#include "tessera/support/flat_map.h"

namespace tessera::prove {

/// Premises of an inequality: each polynomial is >= 0, as every symbol is.
struct Premises {
  const std::vector<Dim>& list;
  std::optional<std::size_t> without = {};  // one that may not be used
  const Dim* avoiding = nullptr;            // an operation that those used may not speak of
};

/// Search for reasons why sizes are not negative: combinations of premises with multipliers that
/// are not negative. Polynomials are kept as vectors of numbers and sampled at some points, since
/// one proof asks thousands of times about a few of them: where all premises hold at a point and
/// the goal is negative there, no reason exists and none is searched for. Reasons do not depend on
/// what was asked before.
class Arithmetic {
 public:
  static constexpr std::size_t kPoints = 512;
  using Values = std::array<double, kPoints>;  // of an atom or a polynomial, by point

  std::optional<certify::Reason> reason_for(const Dim& e, const Premises& premises);
  /// Whether premises hold together at one of the points: if so, they do not contradict each other.
  bool hold_together(const std::vector<Dim>& premises);
  /// Whether a size has a part that is a product of several atoms.
  bool has_product(const Dim& size);
  /// Whether -e is in the list.
  bool has_negation(const std::vector<Dim>& list, const Dim& e);

 private:
  friend class Search;
  using Product = std::uint32_t;  // of atoms, by number; 0 is the empty one
  using Linear = std::vector<std::pair<Product, std::int64_t>>;

  struct PointSet {
    static constexpr std::size_t kWords = kPoints / 64;
    std::array<std::uint64_t, kWords> words = {};

    static PointSet all() {
      PointSet points;
      points.words.fill(~std::uint64_t{0});
      return points;
    }
    void keep(const PointSet& other) {
      for (std::size_t i = 0; i < kWords; ++i) words[i] &= other.words[i];
    }
    bool empty() const {
      return std::ranges::all_of(words, [](std::uint64_t word) { return word == 0; });
    }
  };
  /// Points where a polynomial is negative and where it is not; a point is in neither where its
  /// value is too large to be exact.
  struct Signs {
    PointSet negative, natural;
  };
  struct Polynomial {
    Linear linear;
    Signs signs;
  };
  /// Premises with their polynomials: most goals of a proof are asked for under the same ones.
  struct PremiseList {
    std::vector<Dim> list = {};
    std::vector<const Polynomial*> polynomials = {};
    std::vector<PointSet> before = {}, after = {};  // where the premises before and after one hold
    std::uint64_t hash = 0;
  };

  std::optional<certify::Reason> looked_for(const Dim& e, const Premises& premises,
                                            const PremiseList& list);
  void forget_if_large();
  const PremiseList& prepared(const std::vector<Dim>& list);
  const Polynomial& polynomial(const Dim& dim);
  const Polynomial& converted(const Dim& dim);
  const Linear& linear(const Dim& dim) { return polynomial(dim).linear; }
  /// Values at the points, and the sums of the magnitudes of their terms.
  struct Evaluation {
    Values value, magnitude;
  };
  Evaluation evaluated(const Linear& linear) const;
  Signs signs_of(const Linear& linear) const;
  std::uint32_t atom_of(const Dim& atom);
  Values operation_values(const Dim& atom);
  Product product_of(std::vector<std::uint32_t> atoms);
  std::optional<Product> quotient(Product whole, Product part);
  /// Whether a product may be a multiple of another one, as far as is plain to see.
  bool may_divide(Product whole, Product part) const {
    if (part == 0 || part == whole) return true;
    const Info &all = infos_[whole], &taken = infos_[part];
    // Two products of equally many are different ones.
    return all.atoms.size() > taken.atoms.size() && (taken.mask & ~all.mask) == 0;
  }
  Product times(Product a, Product b);

  struct DimHash {
    std::size_t operator()(const Dim& dim) const { return dim.hash(); }
  };
  std::unordered_map<Dim, std::uint32_t, DimHash> atoms_;
  struct Atom {
    Dim dim;
    bool natural = false;  // not negative
    const Values* values = nullptr;
  };
  std::vector<Atom> by_number_;
  std::deque<Values> values_;  // of atoms
  std::map<std::vector<std::uint32_t>, Product> products_;
  struct Info {
    std::vector<std::uint32_t> atoms;
    Dim dim;
    bool natural;            // not negative
    std::uint64_t mask = 0;  // a bit for each atom, by its number modulo 64
  };
  std::vector<Info> infos_ = {{{}, 1, true}};
  FlatMap<std::optional<Product>> quotients_;
  FlatMap<Product> multiples_;
  std::unordered_map<Dim, Polynomial, DimHash> polynomials_;  // they stay where they are
  /// Cache of `polynomials_` by hash.
  struct Recent {
    Dim dim = 0;
    const Polynomial* polynomial = nullptr;
  };
  std::vector<Recent> recent_ = std::vector<Recent>(1 << 10);
  std::array<PremiseList, 4> recent_lists_;
  std::size_t next_list_ = 0;                      // the one that is replaced next
  FlatMap<std::optional<certify::Reason>> found_;  // or looked for in vain
};

}  // namespace tessera::prove
