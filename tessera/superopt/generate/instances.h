#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
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
/// may be used by several threads, which wait for each other only where something is new.
class Instances {
 public:
  explicit Instances(const OperatorSet& set) : set_(set), buckets_(kBuckets) {}
  ~Instances();
  Instances(const Instances&) = delete;
  Instances& operator=(const Instances&) = delete;

  const OperatorSet& set() const { return set_; }
  ShapeId intern(const Shape& shape);
  const Shape& shape(ShapeId id) const;
  /// The same in every run, whatever the order in which shapes were met.
  std::uint64_t hash(ShapeId id) const;
  /// The number of elements on a choice of sizes.
  std::int64_t count(ShapeId id, std::size_t sizes) const;

  /// Null where the operator does not take these arguments or gives too large a result.
  const Instance* find(std::size_t op, std::span<const ShapeId> args);

 private:
  static constexpr std::size_t kBuckets = 1 << 14, kChunks = 26;
  struct Known {
    Shape shape;
    std::vector<std::int64_t> counts;
    std::uint64_t hash = 0;
  };
  /// What is known of an operator on shapes; those of one bucket are a list that only grows.
  struct Entry {
    std::size_t op = 0;
    std::vector<ShapeId> args;
    std::unique_ptr<const Instance> instance;
    const Entry* next = nullptr;
  };
  const Known& known(ShapeId id) const;
  std::unique_ptr<Instance> made(std::size_t op, std::span<const ShapeId> args);
  bool fits(const OperatorSet::Operator& op, std::span<const ShapeId> args) const;
  std::optional<Graph> on_shapes(const OperatorSet::Operator& op,
                                 std::span<const ShapeId> args) const;
  /// A body, and the shapes of its results.
  struct Shaped {
    const Graph& graph;
    const std::vector<Shape>& results;
  };
  std::optional<Tape> recorded(const OperatorSet::Operator& op, const Shaped& shaped,
                               std::span<const ShapeId> args, std::size_t sizes) const;

  const OperatorSet& set_;
  std::mutex mutex_;  // of whoever adds something
  std::size_t shapes_ = 0;
  std::array<std::atomic<Known*>, kChunks> chunks_ = {};  // of 64, 128, 256, … shapes
  std::vector<std::atomic<const Entry*>> buckets_;
};

/// A size that is a sum of two sizes or of twice one, as these; nothing for any other.
std::optional<std::pair<Dim, Dim>> two_parts(const Dim& dim);

}  // namespace tessera::superopt
