#include "tessera/program/scan.h"

#include <algorithm>

#include "tessera/ops/operators.h"
#include "tessera/program/stage.h"

namespace tessera::program {
namespace {

using runtime::Address;
using runtime::ValueIndex;

bool is_scan(const GraphNode& node) {
  return node.op->control == OpDef::Control::Scan;
}

}  // namespace

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
      return id.present() && of.type(id).dtype != DType::String && static_shape(of.type(id));
    });
  };
  if (!known(graph, graph.inputs(node)) || !known(graph, graph.outputs(node)) ||
      !known(*form.body, form.body->inputs()) || !known(*form.body, form.body->outputs()))
    return std::nullopt;
  const auto sliced = *static_shape(graph.type(graph.inputs(node)[form.states]));
  if (sliced.empty() || sliced[0] < 1) return std::nullopt;
  form.rounds = sliced[0];
  return form;
}

Expected<std::optional<Draft>> loop_body(const ScanForm& scan, const PlanContext& planning) {
  // What a round reads and leaves is at places that the loop has.
  const PlanContext inner{.options = planning.options, .lowerings = planning.lowerings};
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

StateSlots::StateSlots(DraftBuilder& out, runtime::Value state, const ScanForm& scan)
    : rounds_(scan.rounds), is_backwards_(scan.backwards) {
  constexpr std::int64_t kMostBytes = 1 << 18;
  const std::int64_t width = byte_width(state.dtype);
  bytes_ = width;
  for (const std::int64_t extent : state.shape) bytes_ *= extent;
  stride_ = std::max(runtime::kAlignment, (bytes_ + runtime::kAlignment - 1) / runtime::kAlignment *
                                              runtime::kAlignment);
  rolls_ = stride_ <= kMostBytes / (rounds_ + 1);
  state.shape = {(rolls_ ? rounds_ + 1 : 2) * stride_ / width};
  value_ = out.add_value(std::move(state));
}

Address StateSlots::at(std::int64_t slot, bool moves) const {
  return {.value = value_, .offset = slot * stride_, .per_round = moves ? stride_ : 0};
}

void StateSlots::fill(DraftBuilder& out, const Address& initial) const {
  const std::int64_t slot = rolls_ && is_backwards_ ? rounds_ : 0;
  out.add_step(runtime::step::Copy{.from = initial, .to = at(slot), .bytes = bytes_}, {"copy", ""});
}

Address StateSlots::before() const {
  return at(rolls_ && is_backwards_ ? 1 : 0, rolls_);
}

Address StateSlots::after() const {
  return at(rolls_ && is_backwards_ ? 0 : 1, rolls_);
}

Address StateSlots::last() const {
  return at(rolls_ && !is_backwards_ ? rounds_ : 0);
}

std::optional<runtime::step::Copy> StateSlots::copy() const {
  if (rolls_) return std::nullopt;
  return runtime::step::Copy{.from = after(), .to = before(), .bytes = bytes_};
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
  add(runtime::step::Loop{}, {.what = op::scan->name}, {op::scan->name, "loop"});
  for (std::size_t i = 0; i < body.program.steps.size(); ++i) {
    runtime::Step step = body.program.steps[i];
    if (auto* launch = std::get_if<runtime::step::Launch>(&step)) {
      launch->kernel = kernel_of(body.kernels[launch->kernel]);
      for (auto& patch : launch->patches) patch.at = moved(patch.at);
    } else if (auto* copy = std::get_if<runtime::step::Copy>(&step)) {
      copy->from = moved(copy->from);
      copy->to = moved(copy->to);
      if (copy->from == copy->to) continue;  // two outputs in one place
    } else if (auto* check = std::get_if<runtime::step::CheckIndices>(&step)) {
      check->at = moved(check->at);
    }
    CompileReport::Step reported = body.report.steps[i];
    reported.nodes.clear();  // they are numbers of the body's graph
    add(std::move(step), body.program.notes[i], reported);
  }
  for (const runtime::step::Copy& copy : places.copies) add(copy, {.what = "copy"}, {"copy", ""});
  program.steps[loop] = runtime::step::Loop{.rounds = scan.rounds,
                                            .end = static_cast<std::uint32_t>(program.steps.size()),
                                            .backwards = scan.backwards};
}

}  // namespace tessera::program
