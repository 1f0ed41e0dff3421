#include "tessera/program/decisions.h"

#include <algorithm>
#include <set>

#include "tessera/program/backend.h"

namespace tessera::program {
namespace {

/// Values that large products read, directly or behind data movement: products round them anyway.
std::set<std::uint32_t> operands_of_products(const Graph& graph, const Decisions& decisions) {
  const Grouping& grouping = decisions.grouping;
  std::set<std::uint32_t> operands;
  const auto add = [&](ValueId value) {
    while (value.present() && decisions.producers[value.index]) {
      const std::size_t n = *decisions.producers[value.index];
      const NodeKind kind = grouping.kinds[n];
      if (kind != NodeKind::View && kind != NodeKind::Transpose && kind != NodeKind::Move) break;
      value = grouping.sources[n];
    }
    if (value.present()) operands.insert(value.index);
  };
  for (const NodeGroup& group : grouping.groups)
    for (const std::size_t n : group.nodes)
      if (grouping.kinds[n] == NodeKind::Contraction &&
          flops_of(grouping.stages[n][0]) >= 2 * lower::kSmallContraction)
        for (const ValueId input : graph.inputs(graph.nodes()[n])) add(input);
  return operands;
}

/// Whether a convolution has so few output channels that vectors of pixels are better filled than
/// vectors of channels. One without a window reads its channels once, as they are.
bool fills_vectors_by_rows(const Graph& graph, const Grouping& grouping, const NodeGroup& group,
                           const machine::Machine& machine) {
  if (machine.is_gpu() || !group.spatial || group.filters || group.kind != NodeKind::Contraction)
    return false;
  const tile::Stage& stage = grouping.stages[group.nodes[0]][0];
  const auto fold = tile::main_fold(stage);
  const auto is_long = [&](const Bound& bound) {
    return tile::number_of_size(bound.extent, stage.sizes).value_or(1) > 1;
  };
  if (fold == nullptr || std::ranges::count_if(fold->bounds, is_long) < 2) return false;
  const auto shape = static_shape(graph.type(graph.outputs(graph.nodes()[group.nodes[0]])[0]));
  const std::int64_t lanes = machine.vector_bytes / byte_width(DType::F32);
  return shape && shape->size() >= 3 && 4 * (*shape)[1] <= std::min(lanes, shape->back());
}

}  // namespace

ValueId Decisions::behind_views(ValueId value) const {
  while (producers[value.index] && grouping.kinds[*producers[value.index]] == NodeKind::View)
    value = grouping.sources[*producers[value.index]];
  return value;
}

Decisions decide(const Graph& graph, const CompileOptions& options) {
  Decisions decisions{.grouping = group_nodes(
                          graph, {.recomputes_maps = backend_of(options.machine).recomputes_maps})};
  for (NodeGroup& group : decisions.grouping.groups) {
    if (!fills_vectors_by_rows(graph, decisions.grouping, group, options.machine)) continue;
    group.spatial = false;
    group.planar = true;
  }
  // The registers of a GPU hold tiles of several axes.
  const std::int64_t lanes = options.machine.is_gpu() ? 0 : options.machine.vector_bytes / 4;
  decisions.orders = preferred_orders(graph, decisions.grouping, lanes);
  decisions.producers.resize(graph.value_count());
  for (std::size_t n = 0; n < graph.nodes().size(); ++n)
    for (const ValueId output : graph.outputs(graph.nodes()[n]))
      decisions.producers[output.index] = n;
  decisions.storage = storage_types(graph, decisions, options);
  return decisions;
}

std::vector<DType> storage_types(const Graph& graph, const Decisions& decisions,
                                 const CompileOptions& options) {
  constexpr std::int64_t kLarge = 1 << 20;  // elements
  // Statistics and sums of channels, which may exceed the range of f16, take no bandwidth.
  constexpr std::int64_t kFew = 1 << 14;
  std::vector<DType> storage;
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    storage.push_back(graph.type(ValueId{i}).dtype);
  if (!backend_of(options.machine).stores_contraction_dtype) return storage;
  const std::set<std::uint32_t> operands = operands_of_products(graph, decisions);
  for (std::uint32_t i = 0; i < graph.value_count(); ++i) {
    const std::int64_t most = options.contraction_dtype == DType::BF16 ? kLarge : kFew;
    const bool in_full =
        !operands.contains(i) && element_count(shape_of(graph, ValueId{i})).value_or(0) < most;
    if (storage[i] == DType::F32 && !in_full) storage[i] = options.contraction_dtype;
  }
  return storage;
}

double flops_of(const tile::Stage& stage) {
  double elements = 1;
  for (const Dim& dim : stage.output.shape())
    elements *= static_cast<double>(dim.constant().value_or(1));
  const auto fold = tile::main_fold(stage);
  if (fold == nullptr) return elements;
  for (const Bound& bound : fold->bounds)
    elements *= static_cast<double>(tile::number_of_size(bound.extent, stage.sizes).value_or(1));
  return 2 * elements;
}

}  // namespace tessera::program
