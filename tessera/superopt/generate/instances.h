#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "tessera/expr/tracer.h"
#include "tessera/superopt/generate/opset.h"

namespace tessera::superopt {

using ShapeId = std::uint32_t;

/// Operator applied to arguments of fixed symbolic shapes: result shapes, and a tape that computes
/// the results for each choice of sizes.
struct Instance {
  std::vector<ShapeId> results;
  std::vector<Tape> tapes;  // by choice of sizes; computes all results, concatenated
  bool commutes = false;    // binary and commutative
};

/// Cache of shapes and operator instances of a set. Instances are created on demand, by tracing an
/// evaluation of the operator's definition. Thread-safe; threads block only while something new is
/// added.
class Instances {
 public:
  explicit Instances(const OperatorSet& set) : set_(set), buckets_(kBuckets) {}
  ~Instances();
  Instances(const Instances&) = delete;
  Instances& operator=(const Instances&) = delete;

  const OperatorSet& set() const { return set_; }
  ShapeId intern(const Shape& shape);
  const Shape& shape(ShapeId id) const;
  /// Hash of a shape that does not depend on the order in which shapes were interned.
  std::uint64_t hash(ShapeId id) const;
  /// Number of elements for a choice of sizes.
  std::int64_t count(ShapeId id, std::size_t sizes) const;

  /// Instance of an operator on these arguments; null if it does not accept them or the result is
  /// too large.
  const Instance* find(std::size_t op, std::span<const ShapeId> args);

 private:
  static constexpr std::size_t kBuckets = 1 << 14, kChunks = 26;
  struct Known {
    Shape shape;
    std::vector<std::int64_t> counts;
    std::uint64_t hash = 0;
  };
  /// Hash table entry; the entries of a bucket form a list that only grows.
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
  /// Operator body with the shapes of its results.
  struct ShapedBody {
    const Graph& graph;
    const std::vector<Shape>& results;
  };
  std::optional<Tape> recorded(const OperatorSet::Operator& op, const ShapedBody& shaped,
                               std::span<const ShapeId> args, std::size_t sizes) const;

  const OperatorSet& set_;
  std::mutex mutex_;  // held while adding
  std::size_t shapes_ = 0;
  std::array<std::atomic<Known*>, kChunks> chunks_ = {};  // of 64, 128, 256, … shapes
  std::vector<std::atomic<const Entry*>> buckets_;
};

/// Splits a size that is a sum of two sizes, or twice a size, into these two; nothing for any
/// other.
std::optional<std::pair<Dim, Dim>> two_parts(const Dim& dim);

}  // namespace tessera::superopt
