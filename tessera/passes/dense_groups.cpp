#include "tessera/passes/dense_groups.h"

#include <algorithm>
#include <numeric>

#include "tessera/ir/rebuild.h"
#include "tessera/ops/operators.h"

namespace tessera::passes {
namespace {

/// A convolution in groups.
struct GroupedConv {
  std::int64_t groups, channels, filters;  // of a group
};

/// Number of groups to merge: fills a vector with filters and, on a GPU, a k-step of tensor cores
/// with channels; divides the number of groups.
std::int64_t groups_together(const GroupedConv& conv, std::int64_t lanes, bool is_for_gpu) {
  constexpr std::int64_t kStep = 16;
  const std::int64_t wanted =
      std::max(lanes / conv.filters, is_for_gpu ? kStep / conv.channels : 1);
  std::int64_t together = std::clamp<std::int64_t>(wanted, 1, conv.groups);
  while (conv.groups % together != 0) --together;
  return together;
}

/// Weights [filters, channels, …] where each filter has its channels among those of `together`
/// groups.
Tensor spread(const Tensor& weights, std::int64_t filters, std::int64_t together) {
  std::vector<std::int64_t> shape = weights.shape;
  shape[1] *= together;
  Buffer buffer(weights.bytes.size() * static_cast<std::size_t>(together));
  std::fill_n(buffer.data(), buffer.size(), std::byte{0});
  const std::int64_t bytes = static_cast<std::int64_t>(weights.bytes.size()) / weights.shape[0];
  for (std::int64_t filter = 0; filter < weights.shape[0]; ++filter)
    std::copy_n(weights.bytes.data() + filter * bytes, bytes,
                buffer.data() + (filter * together + filter / filters % together) * bytes);
  return {weights.dtype, shape, std::move(buffer).freeze()};
}

}  // namespace

Graph dense_groups(const Graph& graph, const machine::Machine& machine) {
  if (std::ranges::none_of(graph.nodes(), [&](const GraphNode& node) {
        return node.op == op::conv && node.attrs->i("group") > 1;
      }))
    return graph;
  return rebuild(graph, [&](Rebuilder& out, const GraphNode& node) {
    const Tensor* weights = node.op == op::conv ? graph.constant(graph.inputs(node)[1]) : nullptr;
    const std::int64_t groups = weights == nullptr ? 1 : node.attrs->i("group");
    if (groups <= 1 || weights->shape[1] <= 1 || weights->bytes.size() == 0 ||
        !is_float(weights->dtype))
      return out.copy(node);
    const std::int64_t filters = weights->shape[0] / groups;
    const std::int64_t lanes = machine.vector_bytes / byte_width(weights->dtype);
    const std::int64_t together =
        groups_together({groups, weights->shape[1], filters}, lanes, machine.is_gpu());
    if (together == 1) return out.copy(node);
    Attrs attrs = *node.attrs;
    attrs.set("group", groups / together);
    std::vector<ValueId> inputs = out.inputs_of(node);
    inputs[1] = out.constant(spread(*weights, filters, together));
    const ValueId result = graph.outputs(node)[0];
    return out.add({.op = op::conv,
                    .attrs = std::move(attrs),
                    .inputs = std::move(inputs),
                    .outputs = {graph.type(result)}});
  });
}

}  // namespace tessera::passes
