#include "tessera/driver/index_limits.h"

#include <algorithm>

#include "tessera/driver/compile_model.h"
#include "tessera/ir/expand.h"
#include "tessera/program/index_uses.h"
#include "tessera/program/stage.h"

namespace tessera {
namespace {

/// Whether the elements of a result are elements of this operand, perhaps converted.
bool passes_on(const tile::Stage& stage, const std::string& operand) {
  const Scalar* value = &stage.output.value;
  while (const auto* cast = std::get_if<node::Cast>(&value->node())) value = cast->arg.get();
  const auto* read = std::get_if<node::Read>(&value->node());
  return read != nullptr && read->operand == operand;
}

}  // namespace

std::vector<std::int64_t> index_limits(
    const Graph& graph, const std::vector<std::optional<std::vector<std::int64_t>>>& shapes) {
  const std::vector<std::int64_t> none(graph.inputs().size(), kNoLimit);
  const auto sized = specialized(graph, shapes);
  if (!sized) return none;
  const auto core = expand(*sized, is_composite, NeedsValue::Keep);
  if (!core) return none;
  std::vector<std::int64_t> limits(core->value_count(), kNoLimit);
  const auto nodes = core->nodes();
  for (std::size_t n = nodes.size(); n-- > 0;) {  // what uses a value comes after it
    const GraphNode& node = nodes[n];
    for (const program::IndexUse& use : program::index_uses(*core, node))
      limits[use.indices.index] = std::min(limits[use.indices.index], use.high + 1);
    const auto outputs = core->outputs(node);
    if (std::ranges::none_of(outputs, [&](ValueId o) { return limits[o.index] != kNoLimit; }) ||
        node.op->kind() != OpDef::Kind::Core)
      continue;
    const auto stages = program::stages_of_node(*core, node);
    if (!stages) continue;
    for (std::size_t i = 0; i < stages->size(); ++i)
      for (const ValueId input : core->inputs(node))
        if (input.present() && passes_on((*stages)[i], program::tensor_name(input)))
          limits[input.index] = std::min(limits[input.index], limits[outputs[i].index]);
  }
  std::vector<std::int64_t> result;
  for (const ValueId input : core->inputs()) result.push_back(limits[input.index]);
  return result;
}

}  // namespace tessera
