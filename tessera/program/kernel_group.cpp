#include "tessera/program/kernel_group.h"

#include <algorithm>

#include "tessera/program/stage.h"

namespace tessera::program {

Expected<KernelGroup> kernel_group(const Graph& graph, const Grouping& grouping,
                                   const NodeGroup& node_group,
                                   const std::vector<std::size_t>& nodes) {
  KernelGroup result;
  lower::Group& group = result.group;
  for (const std::size_t n : nodes) {
    const GraphNode& node = graph.nodes()[n];
    if (std::ranges::find(node_group.nodes, n) != node_group.nodes.end())
      result.what += (result.what.empty() ? "" : "+") + node.op->name;
    for (const ValueId input : graph.inputs(node))
      if (input.present()) result.ids[tensor_name(input)] = input;
    for (const ValueId output : graph.outputs(node)) result.ids[tensor_name(output)] = output;
    for (const tile::Stage& stage : grouping.stages[n]) {
      group.stages.push_back(stage);
      result.flops += flops_of(stage);
    }
  }
  for (const ValueId id : node_group.results) group.results.push_back(tensor_name(id));

  // Stages that nobody reads are those of other results of a node.
  TESSERA_TRY(group.stages, lower::inlined(std::move(group.stages), group.results));
  for (const tile::Stage& stage : group.stages)
    for (const Operand& operand : stage.operands) result.reads.insert(operand.name);
  std::erase_if(group.stages, [&](const tile::Stage& stage) {
    return !result.reads.contains(stage.name()) &&
           std::ranges::find(group.results, stage.name()) == group.results.end();
  });
  for (const tile::Stage& stage : group.stages) result.reads.erase(stage.name());
  return result;
}

std::vector<std::size_t> with_moves(const Graph& graph, const Decisions& decisions,
                                    const NodeGroup& group, const Places& places) {
  const Grouping& grouping = decisions.grouping;
  std::set<std::size_t> all(group.nodes.begin(), group.nodes.end());
  std::vector<std::size_t> open(group.nodes);
  while (!open.empty()) {
    const std::size_t n = open.back();
    open.pop_back();
    for (const ValueId input : graph.inputs(graph.nodes()[n])) {
      if (!input.present() || places.has(input)) continue;
      const auto from = decisions.producers[input.index];
      if (!from || grouping.kinds[*from] != NodeKind::Move || all.contains(*from)) continue;
      const bool beyond = std::ranges::any_of(grouping.stages[n], [&](const tile::Stage& stage) {
        return reads_beyond(stage, tensor_name(input));
      });
      if (beyond) continue;
      all.insert(*from);
      open.push_back(*from);
    }
  }
  return {all.begin(), all.end()};
}

void set_dtype(tile::Stages& stages, const std::string& tensor, DType dtype) {
  for (tile::Stage& stage : stages) {
    if (stage.name() == tensor) stage.output.dtype = dtype;
    for (Operand& operand : stage.operands)
      if (operand.name == tensor) operand.dtype = dtype;
  }
}

}  // namespace tessera::program
