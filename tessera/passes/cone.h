#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Bit set of the scalar functions that a computation applies.
using Functions = std::uint64_t;
Functions functions(std::initializer_list<Fn> list);
inline constexpr Functions kFolds = Functions{1} << 63;  // it reduces along axes

/// Fan-in cone: the subgraph that computes one value from another one and from parameters, which
/// are constant tensors and, for subgraphs of several inputs, the other inputs.
struct Cone {
  ValueId output, input;
  std::vector<ValueId> parameters = {};
  std::vector<std::size_t> nodes = {};  // in order
  Functions applied = 0;
  std::set<std::size_t> axes = {};   // reduced axes of the input
  std::vector<double> numbers = {};  // scalar constants in it

  /// The cone as a graph whose inputs are `input` and the parameters.
  Graph graph(const Graph& whole) const;
};

/// Enumerates cones as candidates for recognition. Intermediate values of a cone have no uses
/// outside of it.
class Cones {
 public:
  explicit Cones(const Graph& graph);

  /// Cones of one input that end in the result of this node, the smallest first.
  std::vector<Cone> ending_in(std::size_t node) const;

  /// Cones from a matmul of two activations to this node, for attention: all nodes that depend on
  /// the matmul, with their other operands as parameters; with and without the nodes that scale or
  /// transpose the operands of the matmul.
  std::vector<Cone> after_matmuls(std::size_t node) const;
  /// Cone of additions, multiplications, slices and concatenations that ends in this node, for
  /// rotary embeddings.
  std::optional<Cone> rotation(std::size_t node) const;

 private:
  std::optional<std::size_t> producer_of(ValueId value) const;
  bool is_contraction(std::size_t node) const;
  /// Whether the node multiplies by scalar constants, or transposes the last two axes.
  bool is_transpose_or_scale(std::size_t node) const;
  std::optional<Cone> over(const std::set<std::size_t>& nodes, ValueId output) const;
  bool is_parameter(ValueId value) const;
  bool is_closed(const std::set<std::size_t>& nodes, ValueId output) const;
  Cone made(const std::set<std::size_t>& nodes, ValueId output, ValueId input) const;

  const Graph& graph_;
  std::vector<std::vector<std::size_t>> users_;  // by value; the graph itself is the last
  std::vector<Functions> applied_;               // by node
};

}  // namespace tessera::passes
