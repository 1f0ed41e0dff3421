#include "tessera/passes/scan_invariants.h"

#include <algorithm>

#include "tessera/ir/rebuild.h"

namespace tessera::passes {
namespace {

bool is_scan(const GraphNode& node) {
  return node.op->control == OpDef::Control::Scan;
}

/// States of a scan that its body returns unchanged.
struct InvariantStates {
  std::size_t states = 0, elements = 0;
  std::vector<bool> state = {};

  InvariantStates(const GraphNode& node, const Graph& body)
      : states(static_cast<std::size_t>(node.attrs->i("states"))),
        elements(static_cast<std::size_t>(node.attrs->i("elements"))) {
    for (std::size_t i = 0; i < states; ++i) state.push_back(body.outputs()[i] == body.inputs()[i]);
  }
  bool is_capture(std::size_t input) const {
    return input < states ? state[input] : input >= states + elements;
  }
};

/// The body with constants for the captures that are some; the other captures come last.
Graph with_constants(const Graph& body, const InvariantStates& fixed,
                     const std::vector<const Tensor*>& constants) {
  Graph made;
  std::vector<ValueId> mapped(body.value_count());
  for (const bool captures : {false, true})
    for (std::size_t i = 0; i < body.inputs().size(); ++i) {
      const ValueId input = body.inputs()[i];
      if (fixed.is_capture(i) != captures) continue;
      mapped[input.index] = constants[i] != nullptr && captures
                                ? made.add_constant(*constants[i], {})
                                : made.add_input(body.type(input), body.name(input));
    }
  const auto value = [&](ValueId id) {
    if (id.present() && !mapped[id.index].present())
      mapped[id.index] = made.add_constant(*body.constant(id), {});
    return id.present() ? mapped[id.index] : id;
  };
  for (const GraphNode& node : body.nodes()) {
    const auto results = made.add_node(copied_node(body, node, value));
    for (std::size_t i = 0; i < results.size(); ++i)
      mapped[body.outputs(node)[i].index] = results[i];
  }
  std::vector<ValueId> outputs;
  for (std::size_t i = 0; i < body.outputs().size(); ++i)
    if (i >= fixed.states || !fixed.state[i]) outputs.push_back(value(body.outputs()[i]));
  made.set_outputs(std::move(outputs));
  return made;
}

Expected<Graph> folded_scan(const Graph& graph, const FoldLimits& limits) {
  Changes changes;
  return Rewriter(graph, {fold_rewrite(limits, changes)}).run();
}

}  // namespace

Expected<Graph> scan_invariants(const Graph& graph, const FoldLimits& limits) {
  if (std::ranges::none_of(graph.nodes(), is_scan)) return graph;
  TESSERA_TRY(const Graph known, folded_scan(graph, limits));
  std::optional<Diagnostic> error;
  Graph made = rebuild(known, [&](Rebuilder& out, const GraphNode& node) {
    if (!is_scan(node)) return out.copy(node);
    const Graph& body = *known.subgraphs(node)[0];
    const InvariantStates fixed(node, body);
    const auto inputs = known.inputs(node);
    std::vector<const Tensor*> constants;
    for (const ValueId input : inputs) constants.push_back(known.constant(input));
    auto inner = folded_scan(with_constants(body, fixed, constants), limits);
    if (!inner) {
      error = inner.error();
      return out.copy(node);
    }
    Graph::NewNode scan{.op = node.op, .attrs = *node.attrs};
    scan.attrs.set("states", std::ranges::count(fixed.state, false));
    for (const bool captures : {false, true})
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (fixed.is_capture(i) == captures && !(captures && constants[i] != nullptr))
          scan.inputs.push_back(out.mapped(inputs[i]));
    const auto outputs = known.outputs(node);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (i >= fixed.states || !fixed.state[i]) scan.outputs.push_back(known.type(outputs[i]));
    scan.subgraphs.push_back(std::make_shared<const Graph>(*std::move(inner)));
    const auto results = out.add(std::move(scan));
    Rebuilder::Results all;
    auto next = results.begin();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      all.push_back(i < fixed.states && fixed.state[i] ? out.mapped(inputs[i]) : *next++);
    return all;
  });
  if (error) return *error;
  return made;
}

}  // namespace tessera::passes
