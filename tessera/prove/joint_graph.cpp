#include "tessera/prove/joint_graph.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/ir/rebuild.h"

namespace tessera::prove {
namespace {

/// By value: whether no float leads to it.
std::vector<bool> integral_values(const Graph& graph) {
  std::vector<bool> integral(graph.value_count());
  const auto is_whole = [&](ValueId id) {
    const Type& type = graph.type(id);
    return type.is_ranked_tensor() && type.dtype != DType::String && !is_float(type.dtype);
  };
  for (const ValueId id : graph.inputs()) integral[id.index] = is_whole(id);
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (graph.constant({i}) != nullptr) integral[i] = is_whole({i});
  for (const GraphNode& node : graph.nodes()) {
    const bool all = graph.subgraphs(node).empty() && node.op->pure &&
                     std::ranges::all_of(graph.inputs(node), [&](ValueId id) {
                       return !id.present() || integral[id.index];
                     });
    for (const ValueId id : graph.outputs(node)) integral[id.index] = all && is_whole(id);
  }
  return integral;
}

}  // namespace

JointGraph joint_graph(const Graph& source, const Graph& target) {
  JointGraph joint;
  Numbering numbering;
  std::unordered_map<ClassId, ValueId> members;
  std::vector<ClassId> inputs;
  for (const ValueId id : source.inputs()) {
    inputs.push_back(numbering.fresh());
    members.emplace(inputs.back(), joint.graph.add_input(source.type(id), source.name(id)));
  }
  std::vector<ValueId> all_outputs;
  for (const Side side : kSides) {
    const Graph& graph = side == Side::Source ? source : target;
    const std::vector<bool> live = live_values(graph);
    std::vector<ClassId> classes(graph.value_count(), kNoClass);
    std::vector<ValueId>& values = joint.values[static_cast<std::size_t>(side)];
    values.resize(graph.value_count());
    const auto place = [&](ValueId id, ClassId of, ValueId value) {
      classes[id.index] = of;
      values[id.index] = value;
      joint.computed_by.resize(joint.graph.value_count());
      joint.computed_by[value.index][static_cast<std::size_t>(side)] = true;
    };
    for (std::size_t i = 0; i < graph.inputs().size(); ++i)
      place(graph.inputs()[i], inputs[i], members.at(inputs[i]));
    for (std::uint32_t i = 0; i < graph.value_count(); ++i) {
      const Tensor* constant = graph.constant({i});
      if (constant == nullptr || !live[i]) continue;
      const ClassId of = numbering.constant(*constant);
      auto known = members.find(of);
      if (known == members.end())
        known = members.emplace(of, joint.graph.add_constant(*constant, {})).first;
      place({i}, of, known->second);
    }
    for (const GraphNode& node : graph.nodes()) {
      const auto outputs = graph.outputs(node);
      if (std::ranges::none_of(outputs, [&](ValueId id) { return live[id.index]; })) continue;
      std::vector<ClassId> operands;
      for (const ValueId id : graph.inputs(node))
        operands.push_back(id.present() ? classes[id.index] : kNoClass);
      const std::vector<ClassId> of = numbering.results(graph, node, operands);
      if (!members.contains(of.front())) {
        const std::vector<ValueId> results = joint.graph.add_node(
            copied_node(graph, node, [&](ValueId id) { return values[id.index]; }));
        for (std::size_t i = 0; i < of.size(); ++i) members.emplace(of[i], results[i]);
      }
      for (std::size_t i = 0; i < of.size(); ++i) place(outputs[i], of[i], members.at(of[i]));
    }
    const std::vector<bool> integral = integral_values(graph);
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const ValueId id = graph.outputs()[i];
      all_outputs.push_back(values[id.index]);
      if (side == Side::Source)
        joint.is_integral.push_back(integral[id.index]);
      else if (i < joint.is_integral.size())
        joint.is_integral[i] = joint.is_integral[i] && integral[id.index];
    }
  }
  joint.computed_by.resize(joint.graph.value_count());
  joint.graph.set_outputs(std::move(all_outputs));
  return joint;
}

}  // namespace tessera::prove
