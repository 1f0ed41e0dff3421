#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Which scalar functions a computation applies.
using Functions = std::uint64_t;
Functions functions(std::initializer_list<Fn> list);
inline constexpr Functions kFolds = Functions{1} << 63;  // it sums up or takes a maximum over axes

/// A part of a graph that computes one value from one other and from parameters: constants of many
/// numbers and, where it takes several values, the others of them.
struct Cone {
  ValueId output, input;
  std::vector<ValueId> parameters = {};
  std::vector<std::size_t> nodes = {};  // in order
  Functions applied = 0;
  std::set<std::size_t> axes = {};   // of the input, along which it folds
  std::vector<double> numbers = {};  // that it computes with

  /// As a graph of its own, over `input` and the parameters.
  Graph graph(const Graph& whole) const;
};

/// Finds cones.
class Cones {
 public:
  explicit Cones(const Graph& graph);

  /// Those that end in a result of this node, from the smallest on; none inside of which a value is
  /// used elsewhere.
  std::vector<Cone> ending_in(std::size_t node) const;

  /// What lies between a product of two values and this node: all that depends on the product, with
  /// the values that it takes besides for parameters. With those that scale or turn what goes into
  /// it, and without. None inside of which a value is used elsewhere.
  std::vector<Cone> since_products(std::size_t node) const;
  /// What computes a value from one of its type by adding and multiplying, its parts put together
  /// again in between; with the other values that it takes for parameters.
  std::optional<Cone> turning(std::size_t node) const;

 private:
  std::optional<std::size_t> producer_of(ValueId value) const;
  bool is_product(std::size_t node) const;
  /// Whether it multiplies by numbers, or changes the last two axes.
  bool is_turn_or_scale(std::size_t node) const;
  std::optional<Cone> over(const std::set<std::size_t>& nodes, ValueId output) const;
  bool is_parameter(ValueId value) const;
  bool is_closed(const std::set<std::size_t>& nodes, ValueId output) const;
  Cone made(const std::set<std::size_t>& nodes, ValueId output, ValueId input) const;

  const Graph& graph_;
  std::vector<std::vector<std::size_t>> users_;  // by value; the graph itself is the last
  std::vector<Functions> applied_;               // by node
};

}  // namespace tessera::passes
