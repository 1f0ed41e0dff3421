#include "tessera/prove/widen.h"

#include <algorithm>

#include "tessera/interp/interp.h"

namespace tessera::prove {
namespace {

Type widened(Type type) {
  if (type.dtype == DType::F32) type.dtype = DType::F64;
  return type;
}

Attrs widened(const Attrs& attrs) {
  Attrs wide = attrs;
  for (const auto& [name, attr] : attrs.entries()) {
    const auto* text = std::get_if<std::string>(&attr);
    if (text != nullptr && *text == to_string(DType::F32))
      wide.set(name, std::string(to_string(DType::F64)));
    if (const auto* tensor = std::get_if<Tensor>(&attr)) wide.set(name, prove::widened(*tensor));
  }
  return wide;
}

}  // namespace

Tensor widened(const Tensor& tensor) {
  if (tensor.dtype != DType::F32) return tensor;
  Tensor wide = interp::lift<double>(tensor);
  wide.dtype = DType::F64;
  return wide;
}

Graph widened(const Graph& graph) {
  return widened(graph, {}).graph;
}

Widened widened(const Graph& graph, std::span<const std::optional<Tensor>> constants) {
  Graph made;
  std::vector<ValueId> values(graph.value_count());
  for (const ValueId id : graph.inputs())
    values[id.index] = made.add_input(widened(graph.type(id)), graph.name(id));
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (const Tensor* constant = graph.constant({i}))
      values[i] = made.add_constant(
          i < constants.size() && constants[i] ? *constants[i] : widened(*constant), {});
  for (const GraphNode& node : graph.nodes()) {
    Graph::NewNode copy{.op = node.op, .attrs = widened(*node.attrs)};
    for (const ValueId id : graph.inputs(node))
      copy.inputs.push_back(id.present() ? values[id.index] : id);
    for (const ValueId id : graph.outputs(node)) copy.outputs.push_back(widened(graph.type(id)));
    for (const auto& subgraph : graph.subgraphs(node))
      copy.subgraphs.push_back(std::make_shared<const Graph>(widened(*subgraph)));
    const std::vector<ValueId> results = made.add_node(std::move(copy));
    for (std::size_t i = 0; i < results.size(); ++i)
      values[graph.outputs(node)[i].index] = results[i];
  }
  std::vector<ValueId> outputs;
  for (const ValueId id : graph.outputs()) outputs.push_back(values[id.index]);
  made.set_outputs(std::move(outputs));
  return {std::move(made), std::move(values)};
}

}  // namespace tessera::prove
