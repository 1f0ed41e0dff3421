#pragma once

#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "tessera/expr/recorded.h"
#include "tessera/superopt/generate/opset.h"

namespace tessera::superopt {

using ShapeId = std::uint32_t;

/// An operator of a set on arguments of some shapes: what it gives, and how that is computed on
/// each choice of sizes.
struct Instance {
  std::vector<ShapeId> results;
  std::vector<Tape> tapes;  // by choice of sizes; computes all results, one after the other
  bool commutes = false;    // of two arguments: either order gives the same
};

/// The shapes that occur, over the sizes of a set, and the instances of its operators. Instances
/// are made when they are asked for first, by recording an evaluation of the operator's definition;
/// may be used by several threads.
class Instances {
 public:
  explicit Instances(const OperatorSet& set) : set_(set) {}

  const OperatorSet& set() const { return set_; }
  ShapeId intern(const Shape& shape);
  const Shape& shape(ShapeId id) const;
  /// The same in every run, whatever the order in which shapes were met.
  std::uint64_t hash(ShapeId id) const;
  /// The number of elements on a choice of sizes.
  std::int64_t count(ShapeId id, std::size_t sizes) const;

  /// Null where the operator does not take these arguments or gives too large a result.
  const Instance* find(std::size_t op, const std::vector<ShapeId>& args);

 private:
  struct Known {
    Shape shape;
    std::vector<std::int64_t> counts;
    std::uint64_t hash = 0;
  };
  struct Hash {
    std::size_t operator()(const std::vector<std::uint32_t>& key) const;
  };
  std::unique_ptr<Instance> made(std::size_t op, const std::vector<ShapeId>& args);
  bool fits(const OperatorSet::Operator& op, const std::vector<ShapeId>& args) const;
  std::optional<Graph> on_shapes(const OperatorSet::Operator& op,
                                 const std::vector<ShapeId>& args) const;
  /// A body, and the shapes of its results.
  struct Shaped {
    const Graph& graph;
    const std::vector<Shape>& results;
  };
  std::optional<Tape> recorded(const OperatorSet::Operator& op, const Shaped& shaped,
                               const std::vector<ShapeId>& args, std::size_t sizes) const;

  const OperatorSet& set_;
  mutable std::shared_mutex mutex_;
  std::vector<std::unique_ptr<Known>> shapes_;
  std::unordered_map<std::vector<std::uint32_t>, std::unique_ptr<Instance>, Hash> instances_;
};

/// A size that is a sum of two sizes or of twice one, as these; nothing for any other.
std::optional<std::pair<Dim, Dim>> two_parts(const Dim& dim);

}  // namespace tessera::superopt
