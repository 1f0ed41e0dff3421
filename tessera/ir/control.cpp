#include "tessera/ir/control.h"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

constexpr std::array<std::string_view, 2> kBranches = {"then", "else"};
constexpr std::array<std::string_view, 1> kBody = {"body"};

/// Layout of a control-flow operator's lists. Inputs: those that the subgraphs do not see, then
/// states, elements and captures. Results of a subgraph: those that the operator does not have,
/// then states and stacked results.
struct Layout {
  std::size_t hidden_inputs = 0, states = 0, elements = 0;
  std::size_t hidden_results = 0;
};

Diagnostic misfit(std::string message, std::string note = {}) {
  return {.id = "control-flow", .message = std::move(message), .note = std::move(note)};
}

Expected<Layout> layout_of(const OpDef& op, const Attrs& attrs, std::size_t inputs) {
  Layout layout;
  if (op.control == OpDef::Control::If) layout = {.hidden_inputs = 1};
  if (op.control == OpDef::Control::Loop) layout = {.hidden_inputs = 2, .hidden_results = 1};
  for (const auto& [name, into] :
       {std::pair{"states", &layout.states}, std::pair{"elements", &layout.elements}}) {
    if (!attrs.has(name)) continue;
    const std::int64_t count = attrs.i(name);
    if (count < 0 || count > static_cast<std::int64_t>(inputs))
      return misfit(fmt::format("{} is {}", name, count),
                    fmt::format("{} has {} inputs", op.name, inputs));
    *into = static_cast<std::size_t>(count);
  }
  const std::size_t needed = layout.hidden_inputs + layout.states + layout.elements;
  if (inputs < needed)
    return misfit(fmt::format("{} has {} inputs", op.name, inputs),
                  fmt::format("it needs {} or more", needed));
  return layout;
}

/// Axis that a scan attribute names for element or result i; 0 if the list is empty.
Expected<std::size_t> axis_of(const Attrs& attrs, std::string_view list, std::size_t i,
                              std::size_t rank) {
  const Ints& axes = attrs.ints(list);
  TESSERA_TRY(const int axis, normal_axis(i < axes.size() ? axes[i] : 0, static_cast<int>(rank)));
  return static_cast<std::size_t>(axis);
}

/// Least upper bound of two types.
Type common(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.dtype != b.dtype) return Type::unknown();
  Type result = a;
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) {
    result.shape.reset();
    return result;
  }
  for (std::size_t i = 0; i < a.shape->size(); ++i)
    if ((*a.shape)[i] != (*b.shape)[i]) (*result.shape)[i] = Dim::undefined();
  return result;
}

/// Kind of the content of an optional: a loop state may change between the optional and its
/// content.
Type::Kind content(Type::Kind kind) {
  if (kind == Type::Kind::Optional) return Type::Kind::Tensor;
  if (kind == Type::Kind::OptionalSequence) return Type::Kind::Sequence;
  return kind;
}

Expected<Type> stacked(Type type, std::size_t axis, const Dim& steps) {
  if (type.kind == Type::Kind::Unknown || !type.shape) return type;
  if (type.kind != Type::Kind::Tensor) return misfit("only tensors can be stacked up");
  type.shape->insert(type.shape->begin() + static_cast<std::ptrdiff_t>(axis), steps);
  return type;
}

std::vector<Type> output_types(const Graph& graph) {
  std::vector<Type> types;
  for (const ValueId output : graph.outputs()) types.push_back(graph.type(output));
  return types;
}

Expected<Done> check_subgraph(const OpDef& op, std::string_view label, const Graph& subgraph,
                              const std::vector<Type>& given) {
  if (subgraph.inputs().size() != given.size())
    return misfit(fmt::format("{} of {} has {} inputs", label, op.name, subgraph.inputs().size()),
                  fmt::format("it is given {}", given.size()));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Type& type = subgraph.type(subgraph.inputs()[i]);
    if (!compatible(type, given[i]))
      return misfit(fmt::format("input {} of {} is {}", i, label, to_string(type)),
                    fmt::format("{} gives it {}", op.name, to_string(given[i])));
  }
  return Done{};
}

}  // namespace

bool compatible(const Type& a, const Type& b) {
  if (a.kind == Type::Kind::Unknown || b.kind == Type::Kind::Unknown) return true;
  if (a.kind != b.kind || a.dtype != b.dtype) return false;
  if (!a.shape || !b.shape) return true;
  return std::ranges::equal(*a.shape, *b.shape, [](const Dim& x, const Dim& y) {
    return !x.constant() || !y.constant() || x == y;
  });
}

std::span<const std::string_view> subgraph_labels(const OpDef& op) {
  if (op.kind() != OpDef::Kind::Control) return {};
  if (op.control == OpDef::Control::If) return kBranches;
  return kBody;
}

Expected<std::vector<Type>> subgraph_inputs(const OpDef& op, const Attrs& attrs,
                                            const std::vector<Type>& inputs) {
  TESSERA_TRY(const Layout layout, layout_of(op, attrs, inputs.size()));
  std::vector<Type> given;
  if (op.control == OpDef::Control::Loop)
    given = {Type::tensor(DType::I64, {}), Type::tensor(DType::Bool, {})};
  for (std::size_t i = layout.hidden_inputs; i < inputs.size(); ++i) {
    Type type = inputs[i];
    const std::size_t element = i - layout.hidden_inputs - layout.states;
    if (i >= layout.hidden_inputs + layout.states && element < layout.elements && type.shape) {
      TESSERA_TRY(const std::size_t axis,
                  axis_of(attrs, "input_axes", element, type.shape->size()));
      type.shape->erase(type.shape->begin() + static_cast<std::ptrdiff_t>(axis));
    }
    given.push_back(std::move(type));
  }
  return given;
}

Expected<std::vector<Type>> control_results(
    const OpDef& op, const Attrs& attrs, const std::vector<Type>& inputs,
    std::span<const std::shared_ptr<const Graph>> subgraphs) {
  TESSERA_TRY(const Layout layout, layout_of(op, attrs, inputs.size()));
  TESSERA_TRY(const std::vector<Type> given, subgraph_inputs(op, attrs, inputs));
  const auto labels = subgraph_labels(op);
  if (subgraphs.size() != labels.size())
    return misfit(fmt::format("{} has {} subgraphs", op.name, subgraphs.size()),
                  fmt::format("it takes {}", labels.size()));
  for (std::size_t i = 0; i < labels.size(); ++i)
    TESSERA_TRY_DONE(check_subgraph(op, labels[i], *subgraphs[i], given));

  std::vector<Type> results = output_types(*subgraphs[0]);
  if (op.control == OpDef::Control::If) {
    const std::vector<Type> others = output_types(*subgraphs[1]);
    if (results.size() != others.size())
      return misfit(fmt::format("then has {} results and else {}", results.size(), others.size()));
    for (std::size_t i = 0; i < results.size(); ++i) results[i] = common(results[i], others[i]);
    return results;
  }

  const std::size_t fewest = layout.hidden_results + layout.states;
  if (results.size() < fewest)
    return misfit(fmt::format("body of {} has {} results", op.name, results.size()),
                  fmt::format("it needs {} or more", fewest));
  if (layout.hidden_results == 1 &&
      !compatible(results[0], {.kind = Type::Kind::Tensor, .dtype = DType::Bool}))
    return misfit(fmt::format("the condition of body is {}", to_string(results[0])));
  results.erase(results.begin(),
                results.begin() + static_cast<std::ptrdiff_t>(layout.hidden_results));

  Dim steps = Dim::undefined();
  for (std::size_t i = 0; i < layout.elements; ++i) {
    const Type& element = inputs[layout.hidden_inputs + layout.states + i];
    if (!element.shape) continue;
    TESSERA_TRY(const std::size_t axis, axis_of(attrs, "input_axes", i, element.shape->size()));
    const Dim& slices = (*element.shape)[axis];
    if (steps.constant() && slices.constant() && steps != slices)
      return misfit(fmt::format("the elements of {} have {} and {} slices", op.name,
                                steps.to_string(), slices.to_string()));
    if (!steps.constant() && (steps.is_undefined() || slices.constant())) steps = slices;
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i < layout.states) {
      const Type& initial = inputs[layout.hidden_inputs + i];
      if (initial.kind != Type::Kind::Unknown && results[i].kind != Type::Kind::Unknown &&
          (content(initial.kind) != content(results[i].kind) || initial.dtype != results[i].dtype))
        return misfit(fmt::format("state {} is {} and becomes {}", i, to_string(initial),
                                  to_string(results[i])));
      results[i] = common(initial, results[i]);
    } else {
      const std::size_t rank = results[i].shape ? results[i].shape->size() + 1 : 1;
      std::size_t axis = 0;
      if (attrs.has("output_axes")) {
        TESSERA_TRY(axis, axis_of(attrs, "output_axes", i - layout.states, rank));
      }
      TESSERA_TRY(results[i], stacked(std::move(results[i]), axis, steps));
    }
  }
  return results;
}

}  // namespace tessera
