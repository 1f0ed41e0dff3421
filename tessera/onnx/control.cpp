#include <algorithm>

#include "onnx.pb.h"
#include "tessera/onnx/data_type.h"
#include "tessera/onnx/graph_reader.h"
#include "tessera/onnx/type_proto.h"
#include "tessera/ops/attention.h"

namespace tessera::onnx {
namespace {

using ::onnx::GraphProto;
using ::onnx::NodeProto;

constexpr int kMaxDepth = 64;

Diagnostic wrong_arity(const NodeProto& node, std::string message) {
  return {.id = "onnx-subgraph-arity", .message = fmt::format("{}: {}", node.op_type(), message)};
}

/// Symbol of a size that changes between iterations of a subgraph.
Dim varying(const std::string& scope, std::size_t state, std::size_t axis) {
  return Dim::symbol(fmt::format("_{}v{}_{}", scope, state, axis));
}

/// Least upper bound of two types; sizes that differ are `undefined`.
Type joined(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.dtype != b.dtype) return Type::unknown();
  Type type = a;
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) {
    type.shape.reset();
  } else {
    for (std::size_t i = 0; i < type.shape->size(); ++i)
      if ((*a.shape)[i] != (*b.shape)[i]) (*type.shape)[i] = Dim::undefined();
  }
  // The elements of a sequence need not agree in what has no name.
  if (type.kind != Type::Kind::Tensor && type.shape &&
      std::ranges::any_of(*type.shape, &Dim::is_undefined))
    type.shape.reset();
  return type;
}

/// Type as seen outside of a subgraph: sizes that the subgraph introduced are unknown.
Type seen_outside(Type type, const std::string& scope) {
  if (!type.shape) return type;
  for (Dim& size : *type.shape) {
    std::set<std::string> symbols;
    size.collect_symbols(symbols);
    if (std::ranges::any_of(
            symbols, [&](const std::string& symbol) { return symbol.starts_with("_" + scope); }))
      size = Dim::undefined();
  }
  return joined(type, type);
}

/// Inserts an axis at a position that may count from the end.
void insert_axis(Type& type, std::int64_t axis, const Dim& size) {
  if (!type.shape) return;
  const auto rank = static_cast<std::int64_t>(type.shape->size()) + 1;
  const std::int64_t at = std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank - 1);
  type.shape->insert(type.shape->begin() + at, size);
}

std::int64_t entry(const Ints& list, std::size_t i) {
  return i < list.size() ? list[i] : 0;
}

}  // namespace

Vals GraphReader::Captures::with(Vals inputs) const {
  for (const auto& [name, value] : values) inputs.push_back(value);
  return inputs;
}

Expected<Done> GraphReader::check_depth() const {
  if (place_.depth < kMaxDepth) return Done{};
  return Diagnostic{
      .id = "onnx-too-deep",
      .message = fmt::format("graphs and functions are nested more than {} deep", kMaxDepth)};
}

GraphReader::Place GraphReader::deeper() const {
  Place place = place_;
  ++place.depth;
  return place;
}

std::string GraphReader::new_scope() {
  return fmt::format("g{}_", ++context_.graphs);
}

Expected<const GraphProto*> GraphReader::graph_attr(const NodeProto& node,
                                                    std::string_view name) const {
  for (const auto& stated : node.attribute())
    if (stated.name() == name)
      if (const auto* attribute = resolved(stated, *place_.env); attribute && attribute->has_g())
        return &attribute->g();
  return Diagnostic{.id = "onnx-unsupported-attribute",
                    .message = fmt::format("{} has no graph {}", node.op_type(), name)};
}

Expected<GraphReader::Captures> GraphReader::captures_of(
    const std::vector<const GraphProto*>& graphs) {
  Captures captures;
  std::set<std::string> seen;
  for (const GraphProto* graph : graphs) {
    for (const std::string& name : free_names(*graph)) {
      if (!seen.insert(name).second) continue;
      TESSERA_TRY(const Val value, use(name));
      if (!value.present()) continue;
      const Tensor* constant = nullptr;
      for (GraphReader* at = this; at != nullptr && constant == nullptr; at = at->around_)
        if (const auto found = at->small_constants_.find(value.id());
            found != at->small_constants_.end())
          constant = &found->second;
      if (constant != nullptr)
        captures.constants.emplace_back(name, *constant);
      else
        captures.values.emplace_back(name, value);
    }
  }
  return captures;
}

Expected<GraphReader::Subgraph> GraphReader::read_subgraph(const GraphProto& graph,
                                                           const SubgraphInputs& given,
                                                           const Captures& captures) {
  TESSERA_TRY_DONE(check_depth());
  if (graph.input_size() != static_cast<int>(given.inputs.size()))
    return Diagnostic{
        .id = "onnx-subgraph-arity",
        .message = fmt::format("subgraph {} has {} inputs", graph.name(), graph.input_size()),
        .note = fmt::format("it is given {}", given.inputs.size())};
  // Finding captures also counts as work, the more the deeper subgraphs are nested.
  context_.nodes += static_cast<std::int64_t>(graph.ByteSizeLong() / 64);
  const std::string scope = new_scope();
  GraphBuilder builder(scope);
  GraphReader reader(context_, builder, deeper());
  if (given.as_declared)
    for (const auto& input : graph.input()) reader.declared_.emplace(input.name(), &input.type());
  for (int i = 0; i < graph.input_size(); ++i) {
    const std::string& name = graph.input(i).name();
    reader.names_->take(name);
    TESSERA_TRY_DONE(
        reader.define(name, builder.input(name, given.inputs[static_cast<std::size_t>(i)])));
  }
  for (const auto& [name, value] : captures.values) {
    reader.names_->take(name);
    TESSERA_TRY_DONE(reader.define(name, builder.input(name, g_.known(value))));
  }
  for (const auto& [name, tensor] : captures.constants) {
    const Val value = builder.constant(tensor, reader.unique_name(name));
    reader.small_constants_.emplace(value.id(), tensor);
    TESSERA_TRY_DONE(reader.define(name, value));
  }
  TESSERA_TRY(const Vals outputs, reader.read_body(graph));
  Subgraph result{.graph = {}, .results = {}, .scope = scope};
  for (const Val& output : outputs) result.results.push_back(builder.known(output).type);
  TESSERA_TRY(result.graph, builder.finish(outputs));
  result.graph.set_name(graph.name());
  return result;
}

Expected<Vals> GraphReader::read_branch_in_place(const GraphProto& graph) {
  TESSERA_TRY_DONE(check_depth());
  GraphReader reader(*this, deeper());
  reader.around_ = this;
  return reader.read_body(graph);
}

Expected<Vals> GraphReader::read_control(const NodeProto& node, Call& call) {
  if (call.op == nullptr)
    return call.name == "FlexAttention" ? read_flex_attention(node, call)
                                        : read_sequence_map(node, call);
  switch (call.op->control) {
    case OpDef::Control::If: return read_if(node, call);
    case OpDef::Control::Loop: return read_loop(node, call);
    case OpDef::Control::Scan:
      return call.opset < 9 ? read_batched_scan(node, call) : read_scan(node, call);
    case OpDef::Control::None: break;
  }
  TESSERA_CHECK(false, "{} is no control flow", call.op->name);
  return Vals{};
}

Expected<Vals> GraphReader::read_if(const NodeProto& node, Call& call) {
  if (!call.has_input(0) || call.inputs.size() != 1)
    return wrong_arity(node, fmt::format("{} inputs", call.inputs.size()));
  TESSERA_TRY(const GraphProto* then_graph, graph_attr(node, "then_branch"));
  TESSERA_TRY(const GraphProto* else_graph, graph_attr(node, "else_branch"));
  // Reads only the taken branch of a constant condition: the other may not even type-check, since
  // exporters guard invalid shapes with If.
  if (const std::optional<Tensor> known = call.known(0).content; known && known->count() == 1)
    return read_branch_in_place(integer_at(*known, 0) != 0 ? *then_graph : *else_graph);

  TESSERA_TRY(const Captures captures, captures_of({then_graph, else_graph}));
  TESSERA_TRY(Subgraph then_branch, read_subgraph(*then_graph, {}, captures));
  TESSERA_TRY(Subgraph else_branch, read_subgraph(*else_graph, {}, captures));
  if (then_branch.results.size() != else_branch.results.size())
    return wrong_arity(node, fmt::format("the branches have {} and {} results",
                                         then_branch.results.size(), else_branch.results.size()));
  std::vector<Type> results;
  for (std::size_t i = 0; i < then_branch.results.size(); ++i)
    results.push_back(joined(seen_outside(then_branch.results[i], then_branch.scope),
                             seen_outside(else_branch.results[i], else_branch.scope)));
  return g_.call_control(*call.op, captures.with(call.inputs), {},
                         {std::make_shared<const Graph>(std::move(then_branch.graph)),
                          std::make_shared<const Graph>(std::move(else_branch.graph))},
                         results);
}

Expected<Vals> GraphReader::read_loop(const NodeProto& node, Call& call) {
  TESSERA_TRY(const GraphProto* body, graph_attr(node, "body"));
  call.inputs.resize(std::max<std::size_t>(call.inputs.size(), 2));
  const std::size_t states = call.inputs.size() - 2;
  if (body->output_size() < static_cast<int>(states) + 1)
    return wrong_arity(
        node, fmt::format("the body has {} results for {} states", body->output_size(), states));
  TESSERA_TRY(const Captures captures, captures_of({body}));

  SubgraphInputs given{
      .inputs = {{.type = Type::tensor(DType::I64, {})}, {.type = Type::tensor(DType::Bool, {})}}};
  for (std::size_t i = 0; i < states; ++i) {
    if (!call.has_input(i + 2)) return wrong_arity(node, "a state is left out");
    given.inputs.push_back({.type = call.known(i + 2).type});
  }
  // Reads the body for the initial types of the states; if it changes them, again for their upper
  // bound, until a fixed point. A type can lose its sizes, then its rank, then its kind.
  const std::string scope = new_scope();
  std::optional<Subgraph> read;
  for (bool converged = false; !converged;) {
    TESSERA_TRY(read, read_subgraph(*body, given, captures));
    converged = true;
    for (std::size_t i = 0; i < states; ++i) {
      Type& assumed = given.inputs[i + 2].type;
      Type common = joined(assumed, seen_outside(read->results[i + 1], read->scope));
      for (std::size_t axis = 0; common.shape && axis < common.shape->size(); ++axis)
        if ((*common.shape)[axis].is_undefined()) (*common.shape)[axis] = varying(scope, i, axis);
      if (common == assumed) continue;
      assumed = common;
      converged = given.as_declared = false;
    }
  }
  std::vector<Type> results;
  for (std::size_t i = 1; i < read->results.size(); ++i) {
    Type type =
        i <= states ? given.inputs[i + 1].type : seen_outside(read->results[i], read->scope);
    if (i > states) insert_axis(type, 0, Dim::undefined());
    results.push_back(seen_outside(std::move(type), scope));
  }
  return g_.call_control(*call.op, captures.with(call.inputs),
                         {{"states", static_cast<std::int64_t>(states)}},
                         {std::make_shared<const Graph>(std::move(read->graph))}, results);
}

Expected<Vals> GraphReader::emit_scan(const GraphProto& body, const Captures& captures,
                                      const Vals& inputs, const Attrs& attrs) {
  const auto states = static_cast<std::size_t>(attrs.i("states"));
  const Ints input_axes = attrs.has("input_axes") ? attrs.ints("input_axes") : Ints{};
  const Ints output_axes = attrs.has("output_axes") ? attrs.ints("output_axes") : Ints{};
  SubgraphInputs given;
  Dim steps = Dim::undefined();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Type type = g_.known(inputs[i]).type;
    if (i >= states && type.shape) {
      const auto rank = static_cast<int>(type.shape->size());
      TESSERA_TRY(const int axis, normal_axis(entry(input_axes, i - states), rank));
      steps = (*type.shape)[static_cast<std::size_t>(axis)];
      type.shape->erase(type.shape->begin() + axis);
    }
    given.inputs.push_back({.type = std::move(type)});
  }
  TESSERA_TRY(Subgraph read, read_subgraph(body, given, captures));
  if (read.results.size() < states)
    return Diagnostic{.id = "onnx-subgraph-arity",
                      .message = fmt::format("Scan: the body has {} results for {} states",
                                             read.results.size(), states)};
  std::vector<Type> results;
  for (std::size_t i = 0; i < read.results.size(); ++i) {
    Type type = i < states ? given.inputs[i].type : seen_outside(read.results[i], read.scope);
    if (i >= states) insert_axis(type, entry(output_axes, i - states), steps);
    results.push_back(std::move(type));
  }
  return g_.call_control(*find_op("scan"), captures.with(inputs), attrs,
                         {std::make_shared<const Graph>(std::move(read.graph))}, results);
}

Expected<Vals> GraphReader::read_scan(const NodeProto& node, Call& call) {
  TESSERA_TRY(const GraphProto* body, graph_attr(node, "body"));
  TESSERA_TRY(const auto elements, call.take_as<std::int64_t>("num_scan_inputs"));
  const auto count = static_cast<std::int64_t>(call.inputs.size());
  if (elements.value_or(0) < 1 || *elements > count)
    return wrong_arity(node,
                       fmt::format("{} of {} inputs are scanned", elements.value_or(0), count));
  Attrs attrs{{"states", count - *elements}, {"elements", *elements}};
  for (const char* name : {"input_axes", "input_directions", "output_axes", "output_directions"}) {
    TESSERA_TRY(const auto list, call.take_as<Ints>(std::string("scan_") + name));
    if (list) attrs.set(name, *list);
  }
  for (const Val& input : call.inputs)
    if (!input.present()) return wrong_arity(node, "an input is left out");
  TESSERA_TRY(const Captures captures, captures_of({body}));
  return emit_scan(*body, captures, call.inputs, attrs);
}

Expected<Vals> GraphReader::read_batched_scan(const NodeProto& node, Call& call) {
  // Opset 8 has a leading batch axis everywhere: a scan over the batch without states, whose body
  // is the scan of one sequence.
  if (call.has_input(0)) return call.unsupported("sequences of different length");
  TESSERA_TRY(const GraphProto* body, graph_attr(node, "body"));
  TESSERA_TRY(const auto elements, call.take_as<std::int64_t>("num_scan_inputs"));
  TESSERA_TRY(const auto directions, call.take_as<Ints>("directions"));
  const auto count = static_cast<std::int64_t>(call.inputs.size()) - 1;
  if (elements.value_or(0) < 1 || *elements > count)
    return wrong_arity(node,
                       fmt::format("{} of {} inputs are scanned", elements.value_or(0), count));
  TESSERA_TRY(const Captures captures, captures_of({body}));

  const std::string scope = new_scope();
  GraphBuilder one(scope);
  Vals inputs(call.inputs.begin() + 1, call.inputs.end()), slices;
  Dim batch = Dim::undefined();
  for (const Val& input : inputs) {
    if (!input.present()) return wrong_arity(node, "an input is left out");
    Type type = g_.known(input).type;
    if (!type.shape || type.shape->empty()) return call.unsupported("an input has no batch axis");
    batch = type.shape->front();
    type.shape->erase(type.shape->begin());
    slices.push_back(one.input({}, {.type = std::move(type)}));
  }
  Captures inner = captures;
  for (auto& [name, value] : inner.values) value = one.input(name, g_.known(value));
  Attrs attrs{{"states", count - *elements}, {"elements", *elements}};
  if (directions) attrs.set("input_directions", *directions);
  GraphReader reader(context_, one, deeper());
  TESSERA_TRY(const Vals made, reader.emit_scan(*body, inner, slices, attrs));
  std::vector<Type> results;
  for (const Val& value : made) {
    Type type = seen_outside(one.known(value).type, scope);
    insert_axis(type, 0, batch);
    results.push_back(std::move(type));
  }
  TESSERA_TRY(Graph graph, one.finish(made));
  return g_.call_control(*call.op, captures.with(inputs), {{"states", 0}, {"elements", count}},
                         {std::make_shared<const Graph>(std::move(graph))}, results);
}

Expected<Vals> GraphReader::read_sequence_map(const NodeProto& node, Call& call) {
  // A loop over positions whose states are the results so far.
  TESSERA_TRY(const GraphProto* body, graph_attr(node, "body"));
  if (!call.has_input(0) || body->input_size() != static_cast<int>(call.inputs.size()))
    return wrong_arity(node, fmt::format("{} inputs for a body that has {}", call.inputs.size(),
                                         body->input_size()));
  TESSERA_TRY(Captures captures, captures_of({body}));
  const std::string scope = new_scope();
  GraphBuilder step(scope);
  GraphReader reader(context_, step, deeper());
  const Val at = step.input("position", DType::I64, {});
  const Val condition = step.input("condition", DType::Bool, {});
  Vals inputs = {g_.op("sequence_length", {call.inputs[0]}), Val{}}, states;
  std::vector<Type> results;
  for (const auto& output : body->output()) {
    TESSERA_TRY(Type type, type_of(output.type(), output.name()));
    const DType dtype = type.kind == Type::Kind::Tensor ? type.dtype : DType::F32;
    inputs.push_back(g_.op("sequence_empty", {}, {{"dtype", std::string(to_string(dtype))}}));
    results.push_back({.kind = Type::Kind::Sequence, .dtype = dtype});
    states.push_back(step.input({}, {.type = results.back()}));
  }
  for (int i = 0; i < body->input_size(); ++i) {
    const Val& given = call.inputs[static_cast<std::size_t>(i)];
    if (!given.present()) return wrong_arity(node, "an input is left out");
    Val value = step.input({}, {.type = g_.known(given).type});
    inputs.push_back(given);
    if (g_.known(given).type.kind == Type::Kind::Sequence)
      value = step.op("sequence_at", {value, at});
    reader.declared_.emplace(body->input(i).name(), &body->input(i).type());
    TESSERA_TRY_DONE(reader.define(body->input(i).name(), value));
  }
  for (const auto& [name, value] : captures.values)
    TESSERA_TRY_DONE(reader.define(name, step.input(name, g_.known(value))));
  for (const auto& [name, tensor] : captures.constants)
    TESSERA_TRY_DONE(reader.define(name, step.constant(tensor, name)));
  TESSERA_TRY(const Vals made, reader.read_body(*body));
  Vals outputs = {condition};
  for (std::size_t i = 0; i < made.size(); ++i)
    outputs.push_back(step.op("sequence_insert", {states[i], made[i]}));
  TESSERA_TRY(Graph graph, step.finish(outputs));
  return g_.call_control(*find_op("loop"), captures.with(inputs),
                         {{"states", static_cast<std::int64_t>(states.size())}},
                         {std::make_shared<const Graph>(std::move(graph))}, results);
}

Expected<Vals> GraphReader::read_flex_attention(const NodeProto& node, Call& call) {
  // The modifiers are read in place, between the operators of attention.
  const auto modifier = [&](std::string_view name) -> AttentionModifier {
    const auto graph = graph_attr(node, name);
    if (!graph) return {};
    return [this, &node, body = *graph](const Val& x) -> Expected<Val> {
      if (body->input_size() != 1 || body->output_size() != 1)
        return wrong_arity(node, fmt::format("a modifier has {} inputs and {} results",
                                             body->input_size(), body->output_size()));
      TESSERA_TRY_DONE(check_depth());
      GraphReader reader(*this, deeper());
      reader.around_ = this;
      TESSERA_TRY_DONE(reader.define(body->input(0).name(), x));
      TESSERA_TRY(const Vals made, reader.read_body(*body));
      return made[0];
    };
  };
  FlexAttention form{.score_mod = modifier("score_mod"), .prob_mod = modifier("prob_mod")};
  TESSERA_TRY(form.scale, call.take_as<double>("scale"));
  TESSERA_TRY(const auto precision, call.take_as<std::int64_t>("softmax_precision"));
  if (precision) {
    TESSERA_TRY(form.precision, dtype_of(*precision));
    if (!is_float(*form.precision))
      return call.unsupported(fmt::format("softmax_precision is {}", to_string(*form.precision)));
  }
  for (const Val& input : call.inputs)
    if (input.present() && !g_.known(input).type.is_ranked_tensor())
      return call.unsupported("the rank of an input is not known");
  auto out = flex_attention(form, call.inputs);
  if (!out && is_needs_value(out.error()))
    return call.unsupported("the number of heads is not known", "the model has to state it");
  TESSERA_TRY(const Val result, std::move(out));
  return Vals{result};
}

}  // namespace tessera::onnx
