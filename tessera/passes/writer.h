#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "tessera/ir/rebuild.h"
#include "tessera/ops/operators.h"

namespace tessera::passes {

/// Number of elements of a tensor of these sizes.
inline std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// Rewrites the nodes of an operator with one result: `write(out, node)` returns the new result, or
/// nothing where the node stays.
template <class Write>
Graph with_rewritten(const Graph& graph, OpRef op, const Write& write) {
  const auto is_it = [&](const GraphNode& node) { return node.op == op; };
  if (std::ranges::none_of(graph.nodes(), is_it)) return graph;
  return rebuild(graph, [&](Rebuilder& out, const GraphNode& node) -> Rebuilder::Results {
    if (is_it(node))
      if (const std::optional<ValueId> made = write(out, node)) return {*made};
    return out.copy(node);
  });
}

/// Adds nodes with results of one dtype and static shape to a graph that is being rebuilt.
class Writer {
 public:
  using Sizes = std::vector<std::int64_t>;

  Writer(Rebuilder& out, DType dtype) : out_(out), dtype_(dtype) {}

  ValueId add(OpRef op, const Attrs& attrs, std::vector<ValueId> inputs, const Sizes& shape) {
    const auto full = completed(*op, attrs);
    TESSERA_CHECK(full.has_value(), "attributes of {}", op->name);
    return out_.add({.op = op,
                     .attrs = *full,
                     .inputs = std::move(inputs),
                     .outputs = {Type::tensor(dtype_, {shape.begin(), shape.end()})}})[0];
  }

  ValueId constant(Tensor tensor) { return out_.constant(std::move(tensor)); }
  ValueId integers(const Sizes& values) {
    return constant(Tensor::of<std::int64_t>(DType::I64, {static_cast<std::int64_t>(values.size())},
                                             std::span(values)));
  }

  ValueId reshaped(ValueId value, const Sizes& shape) {
    return add(op::reshape, {}, {value, integers(shape)}, shape);
  }
  /// Axis i of the result is axis order[i] of the value, which has the sizes `shape`.
  ValueId transposed(ValueId value, const Sizes& shape, const Sizes& order) {
    Sizes moved;
    for (const std::int64_t axis : order) moved.push_back(shape[static_cast<std::size_t>(axis)]);
    return add(op::transpose, {{"perm", Ints(order.begin(), order.end())}}, {value}, moved);
  }

 private:
  Rebuilder& out_;
  DType dtype_;
};

}  // namespace tessera::passes
