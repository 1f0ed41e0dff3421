#include "tessera/passes/sequences.h"

#include "tessera/ops/operators.h"

namespace tessera::passes {
namespace {

/// The sizes of the parts along an axis of this size: those given, or all of one size.
std::optional<Ints> parts_of(const Tensor* given, std::int64_t whole) {
  Ints parts;
  if (given == nullptr) return Ints(static_cast<std::size_t>(whole), 1);
  if (!given->shape.empty()) return integers_of(*given);
  const std::int64_t size = integer_at(*given, 0);
  if (size < 1) return std::nullopt;
  for (std::int64_t rest = whole; rest > 0; rest -= size) parts.push_back(std::min(rest, size));
  return parts;
}

}  // namespace

Rewriter::Rewrite sequence_rewrite(Changes& changes) {
  return [&changes](Rewriter& out, std::size_t index) -> std::optional<Rewriter::Results> {
    const Graph& graph = out.made();
    const GraphNode node = graph.nodes()[index];
    if (node.op != op::sequence_at) return std::nullopt;
    const Tensor* place = graph.constant(graph.inputs(node)[1]);
    const GraphNode* made_by = graph.producer(graph.inputs(node)[0]);
    if (place == nullptr || made_by == nullptr || made_by->op != op::split_to_sequence)
      return std::nullopt;
    const auto inputs = graph.inputs(*made_by);
    const ValueId x = inputs[0];
    const bool stated = inputs.size() > 1 && inputs[1].present();
    const Tensor* sizes = stated ? graph.constant(inputs[1]) : nullptr;
    if ((stated && sizes == nullptr) || !graph.type(x).is_ranked_tensor()) return std::nullopt;
    if (!stated && made_by->attrs->i("keepdims") == 0) return std::nullopt;  // the axis would go
    const Shape& shape = *graph.type(x).shape;
    const auto axis = normal_axis(made_by->attrs->i("axis"), static_cast<int>(shape.size()));
    const auto whole = axis ? shape[static_cast<std::size_t>(*axis)].constant() : std::nullopt;
    const auto parts = whole ? parts_of(sizes, *whole) : std::nullopt;
    if (!parts) return std::nullopt;
    std::int64_t which = integer_at(*place, 0);
    if (which < 0) which += static_cast<std::int64_t>(parts->size());
    if (which < 0 || which >= static_cast<std::int64_t>(parts->size())) return std::nullopt;
    const ValueId list = out.constant(
        Tensor::of<std::int64_t>(DType::I64, {static_cast<std::int64_t>(parts->size())}, *parts));
    const auto attrs = completed(*op::split, {{"axis", *axis}});
    const auto results =
        attrs ? out.emit({.op = op::split, .attrs = *attrs, .inputs = {x, list}}) : std::nullopt;
    if (!results) return std::nullopt;
    changes.emplace_back("sequence_at is a part", out.where());
    return Rewriter::Results{(*results)[static_cast<std::size_t>(which)]};
  };
}

}  // namespace tessera::passes
