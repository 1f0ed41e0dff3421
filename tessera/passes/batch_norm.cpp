#include "tessera/passes/batch_norm.h"

#include <algorithm>
#include <cmath>

namespace tessera::passes {
namespace {

constexpr double kEpsilon = 1e-5;

/// A tensor of the same shape, computed element by element in double.
template <class F>
Tensor made(const Tensor& like, const F& f) {
  std::vector<float> elements;
  for (std::int64_t i = 0; i < like.count(); ++i) elements.push_back(static_cast<float>(f(i)));
  return Tensor::of<float>(DType::F32, like.shape, elements);
}

}  // namespace

Rewriter::Change plain_batch_norms() {
  return [](Rewriter& out, std::size_t index) -> std::optional<Rewriter::Results> {
    static const OpDef* const op = find_op("batch_normalization");
    const Graph& graph = out.made();
    const GraphNode node = graph.nodes()[index];
    if (node.op != op || node.attrs->i("training_mode") != 0 || graph.outputs(node).size() != 1)
      return std::nullopt;
    const double epsilon = node.attrs->f("epsilon");
    // Rules are about this epsilon, as a double or as a file rounds it.
    constexpr double kNear = 1e-6;
    for (const double known : {kEpsilon, 1e-3})
      if (std::abs(epsilon - known) < kNear * known) return std::nullopt;
    std::vector<ValueId> inputs(graph.inputs(node).begin(), graph.inputs(node).end());
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const Tensor* constant = graph.constant(inputs[i]);
      if (constant == nullptr || constant->dtype != DType::F32) return std::nullopt;
    }
    const Tensor scale = *graph.constant(inputs[1]), variance = *graph.constant(inputs[4]);
    inputs[1] = out.constant(made(scale, [&](std::int64_t i) {
      return number_at(scale, i) / std::sqrt(number_at(variance, i) + epsilon);
    }));
    inputs[4] = out.constant(made(variance, [](std::int64_t) { return 1 - kEpsilon; }));
    Attrs attrs = *node.attrs;
    attrs.set("epsilon", kEpsilon);
    return out.emit({.op = op,
                     .attrs = std::move(attrs),
                     .inputs = std::move(inputs),
                     .outputs = {graph.type(graph.outputs(node)[0])}});
  };
}

}  // namespace tessera::passes
