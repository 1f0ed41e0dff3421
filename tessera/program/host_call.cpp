#include "tessera/program/host_call.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "tessera/ir/text.h"

namespace tessera::program {

HostCall host_call(const Graph& graph, const GraphNode& node) {
  constexpr std::int64_t kSmall = 64;  // elements of a constant that is written as text
  HostCall call;
  Graph alone;
  alone.set_name(node.op->name);
  std::vector<ValueId> inputs;
  std::map<std::uint32_t, ValueId> made;
  for (const ValueId input : graph.inputs(node)) {
    if (!input.present()) {
      inputs.push_back({});
      continue;
    }
    if (const auto it = made.find(input.index); it != made.end()) {
      inputs.push_back(it->second);
      continue;
    }
    const Tensor* constant = graph.constant(input);
    if (constant != nullptr && (constant->dtype == DType::String || constant->count() <= kSmall)) {
      inputs.push_back(alone.add_constant(*constant, {}));
    } else {
      inputs.push_back(alone.add_input(graph.type(input), fmt::format("x{}", inputs.size())));
      call.inputs.push_back(input);
    }
    made.emplace(input.index, inputs.back());
  }
  std::vector<Type> types;
  for (const ValueId output : graph.outputs(node)) types.push_back(graph.type(output));
  const auto subgraphs = graph.subgraphs(node);
  alone.set_outputs(alone.add_node({.op = node.op,
                                    .attrs = *node.attrs,
                                    .inputs = std::move(inputs),
                                    .outputs = std::move(types),
                                    .subgraphs = {subgraphs.begin(), subgraphs.end()}}));
  call.graph = to_text(alone);
  return call;
}

}  // namespace tessera::program
