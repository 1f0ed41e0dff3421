#include "tessera/ir/rebuild.h"

#include "tessera/support/check.h"

namespace tessera {

Rebuilder::Rebuilder(const Graph& from) : from_(from), mapped_(from.value_count()) {
  made_.set_name(from.name());
  for (const ValueId input : from.inputs()) {
    const ValueId made = made_.add_input(from.type(input), {});
    take_name(input, made);
    mapped_[input.index] = made;
  }
}

void Rebuilder::take_name(ValueId from, ValueId to) {
  if (from_.is_named(from) && !made_.is_named(to)) made_.set_name(to, from_.name(from));
}

ValueId Rebuilder::mapped(ValueId value) {
  if (!value.present()) return value;
  std::optional<ValueId>& made = mapped_[value.index];
  if (const Tensor* constant = from_.constant(value); constant != nullptr && !made) {
    made = made_.add_constant(*constant, {});
    take_name(value, *made);
  }
  TESSERA_CHECK(made.has_value(), "{} is used before it is made", from_.name(value));
  return *made;
}

std::vector<ValueId> Rebuilder::mapped(std::span<const ValueId> values) {
  std::vector<ValueId> result;
  for (const ValueId value : values) result.push_back(mapped(value));
  return result;
}

Rebuilder::Results Rebuilder::copy(const GraphNode& node, std::vector<ValueId> inputs) {
  Graph::NewNode made = copied_node(from_, node, [](ValueId id) { return id; });
  made.inputs = std::move(inputs);
  Results results = made_.add_node(std::move(made));
  const auto index = static_cast<std::size_t>(&node - from_.nodes().data());
  made_.set_node_name(made_.nodes().size() - 1, from_.node_name(index));
  return results;
}

void Rebuilder::replace(const GraphNode& node, const Results& with) {
  const auto outputs = from_.outputs(node);
  TESSERA_CHECK(with.size() == outputs.size(), "{} results take the place of {}", with.size(),
                outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!with[i].present()) continue;
    mapped_[outputs[i].index] = with[i];
    take_name(outputs[i], with[i]);
  }
}

Graph rebuild(const Graph& graph,
              const std::function<Rebuilder::Results(Rebuilder&, const GraphNode&)>& visitor) {
  Rebuilder out(graph);
  for (const GraphNode& node : graph.nodes()) out.replace(node, visitor(out, node));
  out.made_.set_outputs(out.mapped(graph.outputs()));
  return std::move(out.made_);
}

}  // namespace tessera
