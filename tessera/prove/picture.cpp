#include "tessera/prove/picture.h"

#include <fmt/format.h>

#include "tessera/ir/literal.h"

namespace tessera::prove {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string label(const Graph& graph, const GraphNode& node) {
  std::string text = node.op->name;
  for (const auto& [name, value] : node.attrs->entries()) {
    const std::string shown = to_text(value);
    if (shown.size() <= 40) text += fmt::format("\\n{}={}", name, escaped(shown));
  }
  for (const ValueId output : graph.outputs(node))
    text += "\\n" + escaped(to_string(graph.type(output)));
  return text;
}

std::string cluster(const Graph& graph, const std::string& side) {
  std::string text = fmt::format("  subgraph cluster_{} {{\n    label=\"{}\"\n", side, side);
  std::string edges;
  const auto name = [&](ValueId id) -> std::string {
    for (std::size_t i = 0; i < graph.inputs().size(); ++i)
      if (graph.inputs()[i] == id) return fmt::format("input{}", i);
    if (const GraphNode* node = graph.producer(id))
      return fmt::format("{}{}", side, node - graph.nodes().data());
    return fmt::format("{}c{}", side, id.index);
  };
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (const Tensor* tensor = graph.constant({i}))
      text += fmt::format(
          "    {} [shape=plain, label=\"{}\"]\n", name({i}),
          tensor->count() <= 4 ? escaped(to_text(*tensor)) : escaped(to_string(graph.type({i}))));
  for (const GraphNode& node : graph.nodes()) {
    const std::string at = name(graph.outputs(node)[0]);
    text += fmt::format("    {} [shape=box, label=\"{}\"]\n", at, label(graph, node));
    for (const ValueId input : graph.inputs(node))
      if (input.present()) edges += fmt::format("  {} -> {}\n", name(input), at);
  }
  text += "  }\n" + edges;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    text += fmt::format("  {0} -> {1}out{2}\n  {1}out{2} [shape=plain, label=\"result\"]\n",
                        name(graph.outputs()[i]), side, i);
  return text;
}

}  // namespace

std::string picture(const Graph& source, const Graph& target) {
  std::string text = "digraph unrelated {\n";
  for (std::size_t i = 0; i < source.inputs().size(); ++i)
    text += fmt::format("  input{} [shape=ellipse, label=\"{}\\n{}\"]\n", i,
                        escaped(source.name(source.inputs()[i])),
                        escaped(to_string(source.type(source.inputs()[i]))));
  return text + cluster(source, "source") + cluster(target, "target") + "}\n";
}

}  // namespace tessera::prove
