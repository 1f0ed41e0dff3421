#include "tessera/ir/builder.h"

#include <algorithm>

#include "tessera/ir/control.h"
#include "tessera/ir/verify.h"
#include "tessera/ops/standard.h"
#include "tessera/support/check.h"

namespace tessera {

Val GraphBuilder::add(ValueId id, ValueInfo known) {
  TESSERA_CHECK(id.index == known_.size(), "values are numbered as they are made");
  known_.push_back(std::move(known));
  arguments_.emplace_back();
  return {*this, id.index};
}

Val GraphBuilder::input(std::string name, DType dtype, Shape shape) {
  return input(std::move(name), ValueInfo{.type = Type::tensor(dtype, std::move(shape))});
}

Val GraphBuilder::input(std::string name, const ValueInfo& known) {
  return add(graph_.add_input(known.type, std::move(name)), known);
}

Val GraphBuilder::constant(Tensor tensor, std::string name) {
  ValueInfo known = constant_info(tensor);
  return add(graph_.add_constant(std::move(tensor), std::move(name)), std::move(known));
}

std::optional<Val> GraphBuilder::find_input(std::string_view name) {
  for (const ValueId id : graph_.inputs())
    if (graph_.is_named(id) && graph_.name(id) == name) return Val(*this, id.index);
  return std::nullopt;
}

Val GraphBuilder::named_real(const std::string& name, DType dtype) {
  if (const std::optional<Val> input = find_input(name)) return *input;
  return input(name, dtype, {});
}

void GraphBuilder::fail(Diagnostic diagnostic) const {
  if (!error_) error_ = std::move(diagnostic);
}

const ValueInfo& GraphBuilder::known(const Val& value) const {
  TESSERA_CHECK(value.present() && &value.body() == this, "a value of another graph is used");
  return known_[value.id()];
}

const Argument& GraphBuilder::argument(const Val& value) const {
  const ValueInfo& of_value = known(value);
  std::optional<Argument>& argument = arguments_[value.id()];
  if (!argument) {
    const std::optional<Signature> signature = signature_of({of_value});
    if (!signature) {
      fail(needs_value("shape"));
      argument.emplace();
    } else {
      argument = signature->front();
    }
  }
  return *argument;
}

void GraphBuilder::refine(const Val& value, const Type& declared) {
  Type& type = known_[value.id()].type;
  if (type.kind == Type::Kind::Unknown) {
    type = declared;
  } else if (type.kind == declared.kind && !type.shape) {
    if (type.dtype == declared.dtype) type.shape = declared.shape;
  } else if (type.shape && declared.shape && type.shape->size() == declared.shape->size()) {
    for (std::size_t axis = 0; axis < type.shape->size(); ++axis) {
      const auto symbol = (*type.shape)[axis].as_symbol();
      if (symbol && symbol->starts_with('_') && (*type.shape)[axis] == made_up(value.id(), axis))
        (*type.shape)[axis] = (*declared.shape)[axis];
    }
  }
  graph_.set_type(ValueId{value.id()}, type);
  arguments_[value.id()].reset();
}

Dim GraphBuilder::made_up(std::size_t value, std::size_t axis) const {
  return Dim::symbol(fmt::format("_{}{}_{}", scope_, value, axis));
}

ValueInfo GraphBuilder::named_sizes(ValueInfo known, std::size_t value) const {
  if (!known.type.shape) return known;
  for (std::size_t axis = 0; axis < known.type.shape->size(); ++axis) {
    Dim& dim = (*known.type.shape)[axis];
    if (dim.is_undefined()) dim = made_up(value, axis);
  }
  return known;
}

Vals GraphBuilder::add_node(const OpDef& op, const Attrs& attrs, const Vals& inputs,
                            std::vector<ValueInfo> results, Subgraphs subgraphs) {
  Graph::NewNode node{.op = &op, .attrs = attrs, .subgraphs = std::move(subgraphs)};
  for (const Val& input : inputs)
    node.inputs.push_back(input.present() ? ValueId{input.id()} : ValueId{});
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i] = named_sizes(std::move(results[i]), graph_.value_count() + i);
    node.outputs.push_back(results[i].type);
  }
  Vals values;
  const std::vector<ValueId> ids = graph_.add_node(std::move(node));
  for (std::size_t i = 0; i < ids.size(); ++i) values.push_back(add(ids[i], std::move(results[i])));
  return values;
}

Vals GraphBuilder::call(std::string_view op, const Vals& inputs, const Attrs& attrs, int outputs) {
  const OpDef* found = find_op(op);
  TESSERA_CHECK(found != nullptr, "there is no operator {}", op);
  return call(*found, inputs, attrs, outputs);
}

Vals GraphBuilder::call(const OpDef& op, const Vals& inputs, const Attrs& attrs, int outputs) {
  std::vector<ValueInfo> known_inputs;
  for (const Val& input : inputs)
    known_inputs.push_back(input.present() ? known(input) : ValueInfo{.present = false});

  std::vector<ValueInfo> results;
  auto complete = completed(op, attrs);
  if (!complete) {
    fail(complete.error());
  } else if (!failed()) {
    auto inferred = infer(op, *complete, known_inputs);
    if (inferred)
      results = *std::move(inferred);
    else
      fail(located(std::move(inferred).error(), {.item = op.name}));
  }
  // An operator may have more results than are wanted.
  const std::size_t wanted =
      outputs > 0 ? static_cast<std::size_t>(outputs) : std::max<std::size_t>(results.size(), 1);
  if (const auto fits = check_results(op, wanted); !fits) fail(fits.error());
  if (const bool is_told = op.kind() != OpDef::Kind::Opaque && !results.empty() &&
                           results[0].type.kind != Type::Kind::Unknown;
      is_told && wanted > results.size())
    fail(located(
        bad_operands(fmt::format("{} has no result {} on these inputs", op.name, results.size())),
        {.item = op.name}));
  results.resize(wanted);
  return add_node(op, complete ? *complete : attrs, inputs, std::move(results));
}

Vals GraphBuilder::call_control(const OpDef& op, const Vals& inputs, const Attrs& attrs,
                                Subgraphs subgraphs, const std::vector<Type>& results) {
  auto complete = completed(op, attrs);
  if (!complete) {
    fail(complete.error());
  } else if (!failed()) {
    std::vector<Type> types;
    for (const Val& input : inputs)
      types.push_back(input.present() ? known(input).type : Type::unknown());
    auto told = control_results(op, *complete, types, subgraphs);
    if (!told)
      fail(located(std::move(told).error(), {.item = op.name}));
    else if (!std::ranges::equal(results, *told, compatible))
      fail(located(bad_operands("the results are not what the subgraphs give"), {.item = op.name}));
  }
  std::vector<ValueInfo> known_results;
  for (const Type& type : results) known_results.push_back({.type = type});
  return add_node(op, complete ? *complete : attrs, inputs, std::move(known_results),
                  std::move(subgraphs));
}

Vals GraphBuilder::scan(const Vals& states, const Vals& elements, const Step& step) {
  GraphBuilder inner(scope_ + std::to_string(graph_.value_count()) + "_");
  Vals inner_states, slices;
  for (const Val& state : states)
    inner_states.push_back(inner.input({}, {.type = known(state).type}));
  Dim steps = 0;
  for (const Val& element : elements) {
    const Argument& whole = argument(element);
    if (whole.rank() == 0) {
      fail(bad_operands("a scan needs an axis to run along"));
      return Vals(states.size(), states.empty() ? Val{} : states[0]);
    }
    steps = whole.dim(0);
    const Shape rest(whole.type.shape.begin() + 1, whole.type.shape.end());
    slices.push_back(inner.input({}, whole.dtype(), rest));
  }
  const Vals made = step(inner, inner_states, slices);
  Expected<Graph> body = inner.finish(made);
  if (!body) {
    fail(std::move(body).error());
    return Vals(made.size(), states.empty() ? elements[0] : states[0]);
  }
  std::vector<Type> results;
  for (std::size_t i = 0; i < made.size(); ++i) {
    Type type = i < states.size() ? known(states[i]).type : inner.known(made[i]).type;
    if (i >= states.size() && type.shape) type.shape->insert(type.shape->begin(), steps);
    results.push_back(std::move(type));
  }
  Vals inputs = states;
  inputs.insert(inputs.end(), elements.begin(), elements.end());
  return call_control(scan_op(), inputs,
                      {{"states", static_cast<std::int64_t>(states.size())},
                       {"elements", static_cast<std::int64_t>(elements.size())}},
                      {std::make_shared<const Graph>(*std::move(body))}, results);
}

Vals GraphBuilder::inlined(const Graph& graph, const Vals& inputs) {
  Vals values(graph.value_count());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (const Tensor* tensor = graph.constant({i})) values[i] = constant(*tensor);
  const auto mapped = [&](ValueId id) { return id.present() ? values[id.index] : Val{}; };
  for (const GraphNode& node : graph.nodes()) {
    Vals operands;
    for (const ValueId id : graph.inputs(node)) operands.push_back(mapped(id));
    const auto outputs = graph.outputs(node);
    const Vals results = call(*node.op, operands, *node.attrs, static_cast<int>(outputs.size()));
    if (failed()) return {};
    for (std::size_t i = 0; i < outputs.size(); ++i) values[outputs[i].index] = results[i];
  }
  Vals results;
  for (const ValueId id : graph.outputs()) results.push_back(mapped(id));
  return results;
}

void GraphBuilder::name(const Val& value, std::string name) {
  graph_.set_name(ValueId{value.id()}, std::move(name));
}

void GraphBuilder::name_last_node(std::string name) {
  if (!graph_.nodes().empty()) graph_.set_node_name(graph_.nodes().size() - 1, std::move(name));
}

Expected<Graph> GraphBuilder::finish(const std::vector<std::pair<std::string, Val>>& outputs) {
  if (error_) return *error_;
  std::vector<ValueId> ids;
  for (const auto& [given, value] : outputs) {
    TESSERA_CHECK(value.present() && &value.body() == this, "an output of another graph");
    if (!given.empty()) graph_.set_name(ValueId{value.id()}, given);
    ids.push_back({value.id()});
  }
  graph_.set_outputs(std::move(ids));
  return graph_;
}

Expected<Graph> GraphBuilder::finish(const Vals& outputs) {
  std::vector<std::pair<std::string, Val>> named;
  for (const Val& value : outputs) named.emplace_back("", value);
  return finish(named);
}

}  // namespace tessera
