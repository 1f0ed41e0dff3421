#include "tessera/program/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tessera/expr/shape.h"
#include "tessera/expr/transform.h"
#include "tessera/expr/walk.h"
#include "tessera/lower/affine.h"
#include "tessera/program/closed_form.h"

namespace tessera::program {

std::string tensor_name(ValueId value) {
  return fmt::format("v{}", value.index);
}

ValueInfo value_info(const Graph& graph, ValueId value) {
  if (!value.present()) return {.present = false};
  if (const Tensor* constant = graph.constant(value)) return constant_info(*constant);
  return {.type = graph.type(value)};
}

namespace {

/// Whether a constant is one number: it has one element, or is a vector of equal integers, as the
/// zero points of channels are.
bool is_one_number(const Tensor& constant) {
  if (constant.count() == 1) return true;
  const std::vector<std::int64_t>& shape = constant.shape;
  if (!is_integer(constant.dtype) || constant.count() == 0 ||
      std::ranges::count_if(shape, [](std::int64_t extent) { return extent > 1; }) > 1)
    return false;
  const std::vector<std::int64_t> elements = integers_of(constant);
  return std::ranges::count(elements, elements[0]) == std::ssize(elements);
}

/// The element of such a constant.
Scalar number_of(const Tensor& constant) {
  switch (sort_of(constant.dtype)) {
    case Sort::Value: return number_at(constant, 0);
    case Sort::Bool: return truth(integer_at(constant, 0) != 0);
    case Sort::Integer:
    case Sort::Unsigned:
    case Sort::Text: break;
  }
  return Scalar(Node(node::Constant{
      .sort = sort_of(constant.dtype), .number = 0, .integer = integer_at(constant, 0)}));
}

/// How far the axes of outputs and folds run, where that is a number.
lower::AxisExtents extents_of(const Definition& definition, const Sizes& sizes,
                              const std::string& suffix) {
  lower::AxisExtents extents;
  const auto add = [&](const std::string& axis, const Scalar& extent) {
    if (const auto number = tile::number_of_size(extent, sizes)) {
      const auto [it, is_new] = extents.emplace(axis + suffix, *number);
      if (!is_new) it->second = std::max(it->second, *number);
    }
  };
  std::set<std::string> open;  // axes whose extent is no number
  for (const Output& output : definition.outputs) {
    for (const MergedAxis& merged : output.axes)
      for (const Axis& part : merged.parts) add(part.name, Scalar(part.size()));
    for_each_within(output.value, [&](const Scalar& part) {
      const auto* component = std::get_if<node::Component>(&part.node());
      if (component == nullptr) return;
      for (const Bound& bound : component->fold->bounds) {
        add(bound.axis, bound.extent);
        if (!tile::number_of_size(bound.extent, sizes)) open.insert(bound.axis + suffix);
      }
    });
  }
  for (const std::string& axis : open) extents.erase(axis);
  return extents;
}

}  // namespace

Expected<tile::Stages> stages_of_node(const Graph& graph, const GraphNode& node) {
  std::vector<ValueInfo> inputs;
  for (const ValueId input : graph.inputs(node)) inputs.push_back(value_info(graph, input));
  const auto signature = signature_of(inputs);
  if (!signature) return bad_operands(fmt::format("{} takes tensors", node.op->name));
  TESSERA_TRY(const Definition definition, node.op->define(*node.attrs, *signature));
  TESSERA_TRY(const Sizes sizes, solve_sizes(definition, shapes_of(*signature)));

  std::map<std::string, ValueId, std::less<>> tensor;  // what operands are
  std::size_t next = 0;
  for (const ValueId input : graph.inputs(node))
    if (input.present()) tensor.emplace(definition.inputs[next++].name, input);
  const std::string suffix = "_" + tensor_name(graph.outputs(node)[0]);

  Transform transform;
  transform.size = [&](const Dim& dim) { return resolved(dim, sizes); };
  transform.index = [&](const std::string& axis) { return index_of(axis + suffix); };
  transform.bound = [&](const std::string& axis) { return axis + suffix; };
  // A window that stays inside of its image reads nothing beyond it.
  const lower::AxisExtents extents = extents_of(definition, sizes, suffix);
  const auto stays_inside = [&](const node::Read& read, ValueId value) {
    const auto shape = static_shape(graph.type(value));
    for (std::size_t i = 0; i < read.at.size(); ++i) {
      const auto index = shape ? lower::affine(read.at[i], extents) : std::nullopt;
      if (!index || !lower::range(*index, extents).within((*shape)[i])) return false;
    }
    return true;
  };
  std::set<std::string> is_read;
  transform.read = [&](const node::Read& given) {
    node::Read read = given;
    const ValueId value = tensor.at(read.operand);
    if (read.otherwise != nullptr && stays_inside(read, value)) read.otherwise = nullptr;
    if (const Tensor* constant = graph.constant(value);
        constant != nullptr && read.otherwise == nullptr && is_one_number(*constant))
      return number_of(*constant);
    if (const Tensor* constant = graph.constant(value);
        constant != nullptr && read.otherwise == nullptr && stays_inside(read, value))
      if (const auto form = closed_form(*constant, read.at)) return *form;
    is_read.insert(tensor_name(value));
    return Scalar(Node(node::Read{tensor_name(value), read.sort, read.at, read.otherwise}));
  };
  const auto numbered = [&](Operand operand) {
    for (Dim& dim : operand.shape) dim = resolved(dim, sizes);
    operand.name = tensor_name(tensor.at(operand.name));
    return operand;
  };
  const auto axis_of = [&](const Axis& axis) {
    return Axis{axis.name + suffix, resolved(axis.size(), sizes)};
  };

  std::vector<Operand> operands;
  for (const Operand& input : definition.inputs) {
    Operand operand = numbered(input);
    const bool known = std::ranges::any_of(
        operands, [&](const Operand& other) { return other.name == operand.name; });
    if (!known) operands.push_back(std::move(operand));
  }
  tile::Stages stages;
  const auto outputs = graph.outputs(node);
  for (std::size_t i = 0; i < outputs.size() && i < definition.outputs.size(); ++i) {
    const Output& output = definition.outputs[i];
    Output made{.name = tensor_name(outputs[i]),
                .dtype = output.dtype,
                .axes = {},
                .value = transform(output.value)};
    for (const MergedAxis& merged : output.axes) {
      MergedAxis& axis = made.axes.emplace_back();
      for (const Axis& part : merged.parts) axis.parts.push_back(axis_of(part));
    }
    if (output.forward) {
      ScatterWrite forward{.over = {},
                           .target = {},
                           .value = transform(output.forward->value),
                           .combine = output.forward->combine};
      for (const Axis& axis : output.forward->over) forward.over.push_back(axis_of(axis));
      for (const Scalar& target : output.forward->target)
        forward.target.push_back(transform(target));
      made.forward = std::move(forward);
    }
    stages.push_back({.operands = {}, .output = std::move(made), .sizes = {}});
  }
  for (const Operand& operand : operands)
    if (is_read.contains(operand.name))
      for (tile::Stage& stage : stages) stage.operands.push_back(operand);
  return stages;
}

}  // namespace tessera::program
