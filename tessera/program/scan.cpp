#include "tessera/program/scan.h"

#include <algorithm>

#include "tessera/ir/rebuild.h"
#include "tessera/passes/fold.h"
#include "tessera/program/stage.h"

namespace tessera::program {
namespace {

using runtime::Address;
using runtime::ValueIndex;

bool is_scan(const GraphNode& node) {
  return node.op->control == OpDef::Control::Scan;
}

/// What becomes of the inputs of a scan: which states stay as they are.
struct Fixed {
  std::size_t states = 0, elements = 0;
  std::vector<bool> state = {};

  Fixed(const GraphNode& node, const Graph& body)
      : states(static_cast<std::size_t>(node.attrs->i("states"))),
        elements(static_cast<std::size_t>(node.attrs->i("elements"))) {
    for (std::size_t i = 0; i < states; ++i) state.push_back(body.outputs()[i] == body.inputs()[i]);
  }
  bool is_capture(std::size_t input) const {
    return input < states ? state[input] : input >= states + elements;
  }
};

/// The body with constants for the captures that are some; the other captures come last.
Graph with_constants(const Graph& body, const Fixed& fixed,
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
    Graph::NewNode copy{.op = node.op, .attrs = *node.attrs};
    for (const ValueId id : body.inputs(node)) copy.inputs.push_back(value(id));
    for (const ValueId id : body.outputs(node)) copy.outputs.push_back(body.type(id));
    const auto subgraphs = body.subgraphs(node);
    copy.subgraphs = {subgraphs.begin(), subgraphs.end()};
    const auto results = made.add_node(std::move(copy));
    for (std::size_t i = 0; i < results.size(); ++i)
      mapped[body.outputs(node)[i].index] = results[i];
  }
  std::vector<ValueId> outputs;
  for (std::size_t i = 0; i < body.outputs().size(); ++i)
    if (i >= fixed.states || !fixed.state[i]) outputs.push_back(value(body.outputs()[i]));
  made.set_outputs(std::move(outputs));
  return made;
}

Expected<Graph> folded(const Graph& graph) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;
  passes::Changes changes;
  return passes::Rewriter(graph, {passes::folding({.most_bytes = kMostBytes}, changes)}).run();
}

}  // namespace

Expected<Graph> with_plain_scans(const Graph& graph) {
  if (std::ranges::none_of(graph.nodes(), is_scan)) return graph;
  TESSERA_TRY(const Graph known, folded(graph));
  std::optional<Diagnostic> error;
  Graph made = rebuild(known, [&](Rebuilder& out, const GraphNode& node) {
    if (!is_scan(node)) return out.copy(node);
    const Graph& body = *known.subgraphs(node)[0];
    const Fixed fixed(node, body);
    const auto inputs = known.inputs(node);
    std::vector<const Tensor*> constants;
    for (const ValueId input : inputs) constants.push_back(known.constant(input));
    auto inner = folded(with_constants(body, fixed, constants));
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

std::optional<ScanForm> scan_form(const Graph& graph, const GraphNode& node) {
  if (!is_scan(node)) return std::nullopt;
  ScanForm form{.body = graph.subgraphs(node)[0],
                .states = static_cast<std::size_t>(node.attrs->i("states")),
                .elements = static_cast<std::size_t>(node.attrs->i("elements"))};
  for (const char* axes : {"input_axes", "output_axes"})
    if (std::ranges::any_of(node.attrs->ints(axes), [](std::int64_t axis) { return axis != 0; }))
      return std::nullopt;
  // A direction that is not said is forwards.
  std::vector<std::int64_t> directions;
  const std::size_t results = graph.outputs(node).size() - form.states;
  for (const auto& [name, count] :
       {std::pair("input_directions", form.elements), std::pair("output_directions", results)}) {
    const Ints& said = node.attrs->ints(name);
    for (std::size_t i = 0; i < count; ++i) directions.push_back(i < said.size() ? said[i] : 0);
  }
  if (directions.empty() || form.elements == 0) return std::nullopt;
  form.backwards = directions[0] != 0;
  if (std::ranges::any_of(directions, [&](std::int64_t d) { return d != directions[0]; }))
    return std::nullopt;
  const auto known = [](const Graph& of, const auto& ids) {
    return std::ranges::all_of(ids, [&](ValueId id) {
      return id.present() && of.type(id).dtype != DType::String && numbers(of.type(id));
    });
  };
  if (!known(graph, graph.inputs(node)) || !known(graph, graph.outputs(node)) ||
      !known(*form.body, form.body->inputs()) || !known(*form.body, form.body->outputs()))
    return std::nullopt;
  const auto sliced = *numbers(graph.type(graph.inputs(node)[form.states]));
  if (sliced.empty() || sliced[0] < 1) return std::nullopt;
  form.rounds = sliced[0];
  return form;
}

Expected<std::optional<Draft>> loop_body(const ScanForm& scan, const Planning& planning) {
  // What a round reads and leaves is at places that the loop has.
  const Planning inner{.options = planning.options, .lowerings = planning.lowerings};
  TESSERA_TRY(Draft body, assemble(*scan.body, inner));
  const bool plain =
      std::ranges::all_of(body.program.steps,
                          [](const runtime::Step& step) {
                            return std::holds_alternative<runtime::step::Launch>(step) ||
                                   std::holds_alternative<runtime::step::Copy>(step) ||
                                   std::holds_alternative<runtime::step::CheckIndices>(step);
                          }) &&
      std::ranges::none_of(body.program.values, [](const runtime::Value& value) {
        return value.home == runtime::Value::Home::Boxed;
      });
  if (!plain) return std::optional<Draft>{};
  return std::optional(std::move(body));
}

void append_loop(
    Draft& draft, const Draft& body, const ScanForm& scan, const LoopPlaces& places,
    const std::function<std::uint32_t(const std::shared_ptr<const tile::Kernel>&)>& kernel_of) {
  runtime::Program& program = draft.program;
  std::vector<Address> address(body.program.values.size());
  const auto place = [&](const std::vector<ValueIndex>& values, const std::vector<Address>& at) {
    for (std::size_t i = 0; i < values.size(); ++i) address[values[i]] = at[i];
  };
  place(body.program.inputs, places.inputs);
  place(body.program.outputs, places.outputs);
  for (std::size_t v = 0; v < body.program.values.size(); ++v) {
    const runtime::Value& value = body.program.values[v];
    const bool is_own =
        value.home == runtime::Value::Home::Arena || value.home == runtime::Value::Home::Weight;
    if (!is_own) continue;
    address[v] = {.value = static_cast<ValueIndex>(program.values.size())};
    if (const auto use = body.weights.find(static_cast<ValueIndex>(v)); use != body.weights.end())
      draft.weights.emplace(address[v].value, use->second);
    program.values.push_back(value);
  }
  const auto moved = [&](const Address& from) {
    Address to = address[from.value];
    to.offset += from.offset;
    return to;
  };
  const auto add = [&](runtime::Step step, const runtime::Program::Note& note,
                       const CompileReport::Step& reported) {
    program.steps.push_back(std::move(step));
    program.notes.push_back(note);
    draft.report.steps.push_back(reported);
  };
  const std::size_t loop = program.steps.size();
  add(runtime::step::Loop{}, {.what = "scan"}, {"scan", "loop"});
  for (std::size_t i = 0; i < body.program.steps.size(); ++i) {
    runtime::Step step = body.program.steps[i];
    if (auto* launch = std::get_if<runtime::step::Launch>(&step)) {
      launch->kernel = kernel_of(body.kernels[launch->kernel]);
      for (auto& patch : launch->patches) patch.at = moved(patch.at);
    } else if (auto* copy = std::get_if<runtime::step::Copy>(&step)) {
      copy->from = moved(copy->from);
      copy->to = moved(copy->to);
    } else if (auto* check = std::get_if<runtime::step::CheckIndices>(&step)) {
      check->at = moved(check->at);
    }
    add(std::move(step), body.program.notes[i], body.report.steps[i]);
  }
  for (const auto& [from, to] : places.copies)
    add(runtime::step::Copy{.from = from, .to = to, .bytes = program.values[to.value].bytes},
        {.what = "copy"}, {"copy", ""});
  program.steps[loop] = runtime::step::Loop{.rounds = scan.rounds,
                                            .end = static_cast<std::uint32_t>(program.steps.size()),
                                            .backwards = scan.backwards};
}

}  // namespace tessera::program
