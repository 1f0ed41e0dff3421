#include "tessera/passes/batch_norm_to_affine.h"

#include <algorithm>
#include <cmath>

#include "tessera/ir/rebuild.h"
#include "tessera/ops/operators.h"

namespace tessera::passes {
namespace {

/// y = x * scale + shift.
struct Affine {
  std::vector<float> scale, shift;  // by channel
};

/// Nothing where the statistics are not known, or are those of the batch.
std::optional<Affine> affine(const Graph& graph, const GraphNode& node) {
  if (node.attrs->i("training_mode") != 0 || graph.outputs(node).size() != 1) return std::nullopt;
  const auto inputs = graph.inputs(node);
  const Tensor* parameters[4];  // scale, bias, mean, variance
  for (std::size_t i = 0; i < 4; ++i) {
    parameters[i] = graph.constant(inputs[1 + i]);
    if (parameters[i] == nullptr || parameters[i]->dtype != DType::F32) return std::nullopt;
  }
  const auto& [scale, bias, mean, variance] = parameters;
  Affine result;
  for (std::int64_t i = 0; i < scale->count(); ++i) {
    const double factor =
        number_at(*scale, i) / std::sqrt(number_at(*variance, i) + node.attrs->f("epsilon"));
    result.scale.push_back(static_cast<float>(factor));
    result.shift.push_back(static_cast<float>(number_at(*bias, i) - number_at(*mean, i) * factor));
  }
  return result;
}

}  // namespace

Graph batch_norm_to_affine(const Graph& graph) {
  const auto is_norm = [](const GraphNode& node) { return node.op == op::batch_normalization; };
  if (std::ranges::none_of(graph.nodes(), is_norm)) return graph;
  return rebuild(graph, [&](Rebuilder& out, const GraphNode& node) {
    const auto parts = is_norm(node) ? affine(graph, node) : std::nullopt;
    const ValueId x = graph.inputs(node).empty() ? ValueId{} : graph.inputs(node)[0];
    if (!parts || graph.type(x).dtype != DType::F32 || !graph.type(x).shape ||
        graph.type(x).shape->size() < 2)
      return out.copy(node);
    // One number per channel, the second axis.
    std::vector<std::int64_t> shape(graph.type(x).shape->size() - 1, 1);
    shape[0] = static_cast<std::int64_t>(parts->scale.size());
    const Type type = graph.type(graph.outputs(node)[0]);
    const auto with = [&](OpRef op, ValueId value, const std::vector<float>& numbers) {
      const ValueId constant =
          out.constant(Tensor::of<float>(DType::F32, shape, std::span(numbers)));
      return out.add({.op = op, .inputs = {value, constant}, .outputs = {type}})[0];
    };
    return Rebuilder::Results{
        with(op::add, with(op::mul, out.mapped(x), parts->scale), parts->shift)};
  });
}

}  // namespace tessera::passes
