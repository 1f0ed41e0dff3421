#include "tessera/passes/step_functions.h"

#include <algorithm>
#include <map>

#include "tessera/expr/walk.h"
#include "tessera/ir/infer.h"

namespace tessera::passes {
namespace {

bool reads_values(const Scalar& scalar) {
  bool found = false;
  for_each_read(scalar, [&](const node::Read& read) { found |= read.sort == Sort::Value; });
  return found;
}

/// Effect of rounding in the float operands of an operator on its result.
enum class Response { Smooth, Step, Unrelated };

/// Response of one element, whose dtype is that of the output.
Response response_of(const Output& output) {
  if (has_fold(output.value) || !reads_values(output.value)) return Response::Unrelated;
  bool is_step = false, rounds = false;
  for_each_within(output.value, [&](const Scalar& part) {
    const auto* apply = std::get_if<node::Apply>(&part.node());
    if (apply == nullptr) return;
    rounds |= apply->fn == Fn::Round;
    const bool jumps = apply->fn == Fn::Floor || apply->fn == Fn::FloorDiv || apply->fn == Fn::Mod;
    is_step |= jumps && reads_values(part);
  });
  if (is_step || (!is_float(output.dtype) && !rounds)) return Response::Step;
  return Response::Smooth;
}

class StepAnalysis {
 public:
  explicit StepAnalysis(const Graph& graph) : graph_(graph), reaches_(graph.value_count()) {}

  std::vector<bool> run() {
    std::vector<bool> nodes(graph_.nodes().size());
    for (std::size_t n = nodes.size(); n-- > 0;) {
      const GraphNode& node = graph_.nodes()[n];
      const auto results = graph_.outputs(node);
      nodes[n] = std::ranges::any_of(results, [&](ValueId id) { return reaches_[id.index]; });
      const Response response = response_to_inputs(node);
      if (response != Response::Step && !(nodes[n] && response == Response::Smooth)) continue;
      for (const ValueId id : graph_.inputs(node))
        if (id.present() && is_float(graph_.type(id).dtype)) reaches_[id.index] = true;
    }
    return nodes;
  }

 private:
  /// Looked up by operator, attributes and types of operands.
  Response response_to_inputs(const GraphNode& node) {
    const auto inputs = graph_.inputs(node);
    const bool has_floats = std::ranges::any_of(inputs, [&](ValueId id) {
      return id.present() && graph_.type(id).is_ranked_tensor() && is_float(graph_.type(id).dtype);
    });
    if (!has_floats || node.op->kind() != OpDef::Kind::Core) return Response::Unrelated;
    std::vector<const void*> key = {node.op, node.attrs};
    for (const ValueId id : inputs) key.push_back(id.present() ? &graph_.type(id) : nullptr);
    const auto [it, added] = responses_.try_emplace(std::move(key), Response::Unrelated);
    if (added) it->second = defined_response(node);
    return it->second;
  }

  Response defined_response(const GraphNode& node) const {
    std::vector<ValueInfo> known;
    for (const ValueId id : graph_.inputs(node)) {
      const Tensor* constant = id.present() ? graph_.constant(id) : nullptr;
      if (!id.present())
        known.push_back({.present = false});
      else
        known.push_back(constant != nullptr && !is_float(constant->dtype)
                            ? constant_info(*constant)
                            : ValueInfo{.type = graph_.type(id)});
    }
    const auto signature = signature_of(known);
    if (!signature) return Response::Unrelated;
    const auto definition = node.op->define(*node.attrs, *signature);
    if (!definition) return Response::Unrelated;
    Response response = Response::Unrelated;
    for (const Output& output : definition->outputs) {
      if (output.forward) continue;
      const Response one = response_of(output);
      if (one == Response::Step) return one;
      if (one == Response::Smooth) response = one;
    }
    return response;
  }

  const Graph& graph_;
  std::vector<bool> reaches_;                               // by value
  std::map<std::vector<const void*>, Response> responses_;  // looked up, never walked through
};

}  // namespace

std::vector<bool> nodes_before_steps(const Graph& graph) {
  return StepAnalysis(graph).run();
}

}  // namespace tessera::passes
