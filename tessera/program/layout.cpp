#include "tessera/program/layout.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "tessera/program/classify.h"
#include "tessera/program/values.h"

namespace tessera::program {

AxisOrder row_major(std::size_t rank) {
  AxisOrder order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

AxisOrder channels_last(std::size_t rank) {
  AxisOrder order = row_major(rank);
  if (rank > 2) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

AxisOrder filters_last(std::size_t rank) {
  AxisOrder order = row_major(rank);
  if (rank > 1) std::rotate(order.begin(), order.begin() + 2, order.end());
  if (rank > 1) std::swap(order[rank - 2], order[rank - 1]);
  return order;
}

namespace {

/// Axes of an order that have more than one position.
AxisOrder long_axes(const AxisOrder& order, std::span<const std::int64_t> shape) {
  AxisOrder result;
  for (const int axis : order)
    if (shape[static_cast<std::size_t>(axis)] != 1) result.push_back(axis);
  return result;
}

/// The layout as row-major or channels last, where it is the same for a tensor of this shape.
AxisOrder usual_form(const AxisOrder& order, std::span<const std::int64_t> shape) {
  for (const AxisOrder& usual : {row_major(shape.size()), channels_last(shape.size())})
    if (same_places(shape, order, usual)) return usual;
  return order;
}

}  // namespace

bool same_places(std::span<const std::int64_t> shape, const AxisOrder& a, const AxisOrder& b) {
  return long_axes(a, shape) == long_axes(b, shape);
}

AxisOrder transposed(const AxisOrder& order, std::span<const int> perm) {
  AxisOrder result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = 0; j < perm.size(); ++j)
      if (perm[j] == order[i]) result[i] = static_cast<int>(j);
  return result;
}

std::optional<AxisOrder> reshaped(const AxisOrder& order, std::span<const std::int64_t> from,
                                  std::span<const std::int64_t> to) {
  const AxisOrder memory = long_axes(order, from);
  const AxisOrder sources = long_axes(row_major(from.size()), from);
  const AxisOrder targets = long_axes(row_major(to.size()), to);
  std::map<int, std::pair<AxisOrder, AxisOrder>> blocks;  // equal products, by the first source
  for (std::size_t s = 0, t = 0; s < sources.size() || t < targets.size();) {
    std::int64_t have = 1, want = 1;
    std::pair<AxisOrder, AxisOrder> block;
    do {
      const bool is_source = have <= want && s < sources.size();
      if (!is_source && t == targets.size()) return std::nullopt;  // a size of 0
      const int axis = is_source ? sources[s++] : targets[t++];
      (is_source ? block.first : block.second).push_back(axis);
      (is_source ? have : want) *= (is_source ? from : to)[static_cast<std::size_t>(axis)];
    } while (have != want);
    if (block.first.empty() || have == 0) return std::nullopt;
    blocks.emplace(block.first[0], std::move(block));
  }
  AxisOrder result;
  for (std::size_t place = 0; place < memory.size();) {
    const auto block = blocks.find(memory[place]);
    if (block == blocks.end()) return std::nullopt;
    for (const int axis : block->second.first)
      if (place == memory.size() || memory[place++] != axis) return std::nullopt;
    result.insert(result.end(), block->second.second.begin(), block->second.second.end());
  }
  for (std::size_t axis = 0; axis < to.size(); ++axis)
    if (to[axis] == 1) result.push_back(static_cast<int>(axis));
  return usual_form(result, to);
}

std::optional<AxisOrder> without_folded(const AxisOrder& order, const std::vector<bool>& folded,
                                        std::span<const std::int64_t> shape) {
  AxisOrder result;
  for (const int axis : order)
    if (const auto end = folded.begin() + axis; !folded[static_cast<std::size_t>(axis)])
      result.push_back(static_cast<int>(std::count(folded.begin(), end, false)));
  if (result.size() != shape.size()) return std::nullopt;
  return usual_form(result, shape);
}

std::vector<std::int64_t> in_memory(std::span<const std::int64_t> shape, const AxisOrder& order) {
  std::vector<std::int64_t> result;
  for (const int axis : order) result.push_back(shape[static_cast<std::size_t>(axis)]);
  return result;
}

namespace {

enum Strength { None, Weak, Strong };

/// The wish of one value, while readers are asked from the last to the first.
struct OrderPreference {
  AxisOrder order = {};
  int strength = None;

  void take(const AxisOrder& other, int how) {
    if (how <= strength) return;
    order = other;
    strength = how;
  }
};

}  // namespace

std::vector<std::optional<AxisOrder>> preferred_orders(const Graph& graph, const Grouping& grouping,
                                                       std::int64_t lanes) {
  std::vector<OrderPreference> wish(graph.value_count());
  const auto rank_of = [&](ValueId value) -> std::size_t {
    const Type& type = graph.type(value);
    return type.is_ranked_tensor() ? type.shape->size() : 0;
  };
  for (const ValueId output : graph.outputs())
    wish[output.index].take(row_major(rank_of(output)), Weak);
  std::vector<bool> spatial(graph.nodes().size(), false), planar = spatial;
  for (const NodeGroup& group : grouping.groups)
    for (const std::size_t n : group.nodes) {
      spatial[n] = group.spatial;
      planar[n] = group.planar;
    }

  const auto has_constant = [&](const GraphNode& node) {
    return std::ranges::any_of(graph.inputs(node), [&](ValueId input) {
      return input.present() && graph.constant(input) != nullptr;
    });
  };

  std::vector<bool> of_matmul(graph.value_count(), false);  // result of a matmul with weights
  for (const NodeGroup& group : grouping.groups) {
    if (group.kind != NodeKind::Contraction || group.spatial || group.planar) continue;
    const bool has_weights = std::ranges::any_of(group.nodes, [&](std::size_t n) {
      return grouping.kinds[n] == NodeKind::Contraction && has_constant(graph.nodes()[n]);
    });
    for (const ValueId result : group.results) of_matmul[result.index] = has_weights;
  }
  const auto innermost = [&](ValueId value, const AxisOrder& order) {
    const std::vector<std::int64_t> shape = shape_of(graph, value);
    const AxisOrder axes = long_axes(order, shape);
    return axes.empty() ? 1 : shape[static_cast<std::size_t>(axes.back())];
  };

  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const GraphNode& node = graph.nodes()[n];
    const ValueId result = graph.outputs(node)[0];
    if (OrderPreference& asked = wish[result.index];
        of_matmul[result.index] && asked.strength != None) {
      const AxisOrder plain = row_major(rank_of(result));
      const std::int64_t elements = innermost(result, asked.order);
      if (elements < lanes && elements < innermost(result, plain)) asked.order = plain;
    }
    const OrderPreference& own = wish[result.index];
    for (const ValueId input : graph.inputs(node)) {
      if (!input.present() || rank_of(input) == 0) continue;
      OrderPreference& theirs = wish[input.index];
      switch (grouping.kinds[n]) {
        case NodeKind::View: {
          const auto order = own.strength != None ? reshaped(own.order, shape_of(graph, result),
                                                             shape_of(graph, input))
                                                  : std::nullopt;
          theirs.take(order.value_or(row_major(rank_of(input))), order ? own.strength : Strong);
          break;
        }
        case NodeKind::Scatter:
        case NodeKind::Host: theirs.take(row_major(rank_of(input)), Strong); break;
        case NodeKind::Transpose:
          if (own.strength != None) {
            // What lies at place i of the result is axis perm[order[i]] of the input.
            const auto perm = *permutation_of(grouping.stages[n][0]);
            AxisOrder order;
            for (const int axis : own.order) order.push_back(perm[static_cast<std::size_t>(axis)]);
            theirs.take(order, own.strength);
          }
          break;
        case NodeKind::Contraction:
        case NodeKind::Window:
          if (spatial[n] && rank_of(input) == rank_of(result))
            theirs.take(channels_last(rank_of(input)), Strong);
          else if (planar[n])
            theirs.take(row_major(rank_of(input)), Strong);
          else if (!spatial[n] && has_constant(node))
            theirs.take(row_major(rank_of(input)), Weak);
          break;
        case NodeKind::Map:
        case NodeKind::Move:
        case NodeKind::Alone:
          if (own.strength != None && rank_of(input) == rank_of(result))
            theirs.take(own.order, own.strength);
          break;
        case NodeKind::Reduction: break;
      }
    }
  }
  std::vector<std::optional<AxisOrder>> result(graph.value_count());
  for (std::size_t i = 0; i < wish.size(); ++i)
    if (wish[i].strength != None) result[i] = wish[i].order;
  return result;
}

}  // namespace tessera::program
