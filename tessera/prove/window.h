#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tessera/prove/classes.h"

namespace tessera::prove {

/// Cut window: two subgraphs that compute one value each from the same inputs, values that are
/// known to be equal in both graphs. It begins with the nearest such cut and can grow.
///
///   source  y = mul(conv(x, w), s)        x -> conv -> mul ->
///   target  z = conv(x, v)                x -> conv ->            cut: {x}, loose: {w, s}, {v}
class Window {
 public:
  static constexpr std::size_t kMostNodes = 120;

  /// Of a class of the source and one of the target.
  Window(const Pairing& pairing, ClassId source, ClassId target);

  /// One step back from the cut, then to the nearest cut again; false where it cannot grow.
  bool grow();

  /// Constants that only this side reads, of many different numbers: a proof has to know first how
  /// those of the two sides hang together.
  const std::vector<ClassId>& loose(Side side) const { return loose_[index(side)]; }
  /// Leaves loose constants of few numbers as they are: proofs may calculate with them.
  void keep_small();
  /// Classes inside, operands before their users.
  std::vector<ClassId> inside(Side side) const;
  /// The inputs of both graphs; weights are inputs like any other.
  const std::vector<ClassId>& cut() const { return cut_; }
  std::size_t nodes() const { return inside_[0].size() + inside_[1].size(); }
  bool too_large() const { return too_large_; }

  /// The subgraph, with the cut as its inputs; nothing where members of the two graphs, each made
  /// of the other, stand for a class.
  std::optional<Graph> graph(Side side) const;

  /// The value that stands for a class on a side: its own where it has one.
  struct Member {
    Side side;
    ValueId value;
  };
  Member member(Side side, ClassId id) const;

 private:
  /// Whether a side has the class as a value that was derived, not one of its graph.
  bool is_derived(Side side, ClassId id) const;
  /// The value whose operands are taken for a class: a derived one is made of the other side's
  /// values, and a constant of one side may be computed on the other.
  Member definition(Side side, ClassId id) const;
  static std::size_t index(Side side) { return static_cast<std::size_t>(side); }
  std::optional<std::vector<ClassId>> operands(Side side, ClassId id) const;
  std::set<ClassId> frontier(Side side) const;
  bool expand(Side side, ClassId id);
  std::size_t rank(ClassId id) const;
  /// Whether a value of the class is the result of an operator.
  bool is_computed(ClassId id) const;
  bool stays_constant(ClassId id) const;
  /// Arithmetic of scales, which proofs calculate with.
  bool is_scale(ClassId id) const;
  void balance();

  const Pairing* pairing_;
  std::array<ClassId, 2> roots_;
  std::array<std::set<ClassId>, 2> inside_;
  std::array<std::vector<ClassId>, 2> loose_;
  std::vector<ClassId> cut_;
  bool too_large_ = false, keeps_small_ = false;
};

}  // namespace tessera::prove
