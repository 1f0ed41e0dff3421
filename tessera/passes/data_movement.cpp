#include "tessera/passes/data_movement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tessera/expr/shape.h"
#include "tessera/ir/data_movement.h"
#include "tessera/ir/expand.h"
#include "tessera/ops/operators.h"

namespace tessera::passes {
namespace {

/// A node whose result is an operand's elements at other positions.
struct Movement {
  std::size_t operand = 0;         // which input of the node
  bool in_order = false;           // an element stays where it is in the row-major order
  std::optional<Ints> order = {};  // axis i of the result is this axis of the operand
};

/// An index expression as arithmetic on positions.
std::optional<Dim> as_dim(const Scalar& scalar, const Sizes& sizes) {
  if (const auto integer = scalar.integer()) return Dim(*integer);
  if (const auto* index = std::get_if<node::Index>(&scalar.node())) return Dim::symbol(index->axis);
  if (const auto* size = std::get_if<node::Size>(&scalar.node())) return resolved(size->dim, sizes);
  const auto* apply = std::get_if<node::Apply>(&scalar.node());
  if (apply == nullptr || apply->args.size() != 2) return std::nullopt;
  const auto a = as_dim(apply->args[0], sizes), b = as_dim(apply->args[1], sizes);
  if (!a || !b) return std::nullopt;
  constexpr Fn kKnown[] = {Fn::Add, Fn::Sub, Fn::Mul, Fn::FloorDiv, Fn::Mod};
  switch (std::ranges::find(kKnown, apply->fn) - std::begin(kKnown)) {
    case 0: return *a + *b;
    case 1: return *a - *b;
    case 2: return *a * *b;
    case 3: return floor_div(*a, *b);
    case 4: return mod(*a, *b);
    default: return std::nullopt;
  }
}

/// The place of an element in the row-major order. A remainder is written as what is left by the
/// quotient, so that the two cancel.
Dim place_of(const std::vector<Dim>& at, const Shape& shape) {
  Dim place = 0;
  for (std::size_t i = 0; i < at.size(); ++i) place = place * shape[i] + at[i];
  for (const Dim::Operation& operation : place.operations())
    if (operation.op == Dim::Op::Mod)
      place = place.replaced(operation.whole,
                             operation.a - operation.b * floor_div(operation.a, operation.b));
  return place;
}

/// The positions of the result's axes; an axis of size 1 has only one.
std::vector<Dim> positions(const Output& output, const Sizes& sizes) {
  std::vector<Dim> all;
  for (const MergedAxis& merged : output.axes) {
    Dim position = 0;
    for (const Axis& part : merged.parts) {
      const Dim size = resolved(part.size(), sizes);
      position = position * size + (size.is(1) ? Dim(0) : Dim::symbol(part.name));
    }
    all.push_back(position);
  }
  return all;
}

/// The only position of each axis of size 1.
Sizes single_positions(const Output& output, const Sizes& sizes) {
  Sizes zero;
  for (const MergedAxis& merged : output.axes)
    for (const Axis& part : merged.parts)
      if (resolved(part.size(), sizes).is(1)) zero.emplace(part.name, 0);
  return zero;
}

std::optional<Movement> movement_of(const OpDef& op, const Attrs& attrs,
                                    const std::vector<ValueInfo>& inputs, const Type& result) {
  if (!result.is_ranked_tensor()) return std::nullopt;
  const auto one = data_movement(op, attrs, inputs);
  if (!one) return std::nullopt;
  const node::Read* read = one->read;
  const Output& output = one->output();
  Movement move{.operand = one->operand};
  const ValueInfo& operand = inputs[one->operand];
  if (operand.type.dtype != result.dtype) return std::nullopt;
  const Shape &from = *operand.type.shape, &to = *result.shape;
  if (product(from) != product(to)) return std::nullopt;

  const auto sizes = solve_sizes(one->definition, shapes_of(*signature_of(inputs)));
  if (!sizes) return std::nullopt;
  std::vector<Dim> at;
  for (const Scalar& index : read->at) {
    const auto dim = as_dim(index, *sizes);
    if (!dim) return std::nullopt;
    at.push_back(*dim);
  }
  const std::vector<Dim> to_positions = positions(output, *sizes);
  // An axis of size 1 has one element; one that is read beside it is not that element.
  const Sizes single = single_positions(output, *sizes);
  for (std::size_t i = 0; i < at.size(); ++i) {
    at[i] = resolved(at[i], single);
    if (from[i].is(1) && read->otherwise == nullptr) at[i] = 0;
  }
  // With as many elements as before, each at its place in the order, none is read from outside.
  move.in_order = place_of(at, from) == place_of(to_positions, to);
  if (read->otherwise != nullptr && !(move.in_order && from == to)) return std::nullopt;

  if (from.size() == to.size()) {
    Ints order(to.size(), -1);
    std::vector<bool> used(from.size());
    for (std::size_t k = 0; k < to.size(); ++k)
      for (std::size_t i = 0; i < from.size() && order[k] < 0; ++i)
        if (!used[i] && from[i] == to[k] && (to[k].is(1) || at[i] == to_positions[k])) {
          order[k] = static_cast<std::int64_t>(i);
          used[i] = true;
        }
    if (std::ranges::find(order, -1) == order.end()) move.order = std::move(order);
  }
  return move.in_order || move.order ? std::optional(move) : std::nullopt;
}

std::optional<Movement> movement_of(const Rewriter& out, const GraphNode& node) {
  const auto results = out.made().outputs(node);
  if (results.size() != 1) return std::nullopt;
  return movement_of(*node.op, *node.attrs, out.known(out.made().inputs(node)),
                     out.made().type(results[0]));
}

/// The sizes as a list of integers; one that is not known is what is left.
std::optional<Tensor> sizes_constant(const Shape& shape) {
  Ints sizes;
  int unknown = 0;
  for (const Dim& dim : shape) {
    if (dim.is(0)) return std::nullopt;
    unknown += dim.constant() ? 0 : 1;
    sizes.push_back(dim.constant().value_or(-1));
  }
  if (unknown > 1) return std::nullopt;
  return Tensor::of<std::int64_t>(DType::I64, {static_cast<std::int64_t>(sizes.size())}, sizes);
}

class DataMovementRewrite {
 public:
  explicit DataMovementRewrite(Changes& changes) : changes_(&changes) {}

  std::optional<Rewriter::Results> operator()(Rewriter& out, std::size_t index) const {
    const GraphNode node = out.made().nodes()[index];
    if (node.op->kind() == OpDef::Kind::Composite) return inlined_identity(out, node);
    const std::optional<Movement> move = movement_of(out, node);
    if (!move) return std::nullopt;
    const ValueId source = out.made().inputs(node)[move->operand];
    const Type type = out.made().type(out.made().outputs(node)[0]);
    if (move->in_order && out.made().type(source) == type)
      return noted(out, node, Rewriter::Results{source});

    const GraphNode* before = out.made().producer(source);
    const std::optional<Movement> first =
        before != nullptr ? movement_of(out, *before) : std::nullopt;
    if (!first) return std::nullopt;
    const ValueId origin = out.made().inputs(*before)[first->operand];
    if (move->in_order && first->in_order) {
      if (out.made().type(origin) == type) return noted(out, node, Rewriter::Results{origin});
      auto sizes = sizes_constant(*type.shape);
      if (!sizes) return std::nullopt;
      const ValueId shape = out.constant(*std::move(sizes));
      return noted(out, node, out.emit(with_defaults(op::reshape, {}, {origin, shape})));
    }
    if (!move->order || !first->order) return std::nullopt;
    Ints order;
    for (const std::int64_t axis : *move->order)
      order.push_back((*first->order)[static_cast<std::size_t>(axis)]);
    return noted(out, node, out.emit(with_defaults(op::transpose, {{"perm", order}}, {origin})));
  }

 private:
  static Graph::NewNode with_defaults(OpRef op, const Attrs& attrs, std::vector<ValueId> inputs) {
    return {.op = op, .attrs = *completed(*op, attrs), .inputs = std::move(inputs)};
  }

  std::optional<Rewriter::Results> noted(const Rewriter& out, const GraphNode& node,
                                         std::optional<Rewriter::Results> results) const {
    if (results)
      changes_->emplace_back(fmt::format("{} removed or merged", node.op->name), out.where());
    return results;
  }

  /// Of a composite whose first result is one of its inputs: the rest of its body.
  std::optional<Rewriter::Results> inlined_identity(Rewriter& out, const GraphNode& node) const {
    const auto inputs = out.made().inputs(node), outputs = out.made().outputs(node);
    if (inputs.empty() || out.made().type(inputs[0]) != out.made().type(outputs[0]))
      return std::nullopt;
    const auto body =
        body_of(*node.op, *node.attrs, out.known(inputs), static_cast<int>(outputs.size()));
    if (!body) return std::nullopt;
    const GraphNode* last = body->producer(body->outputs()[0]);
    if (last != nullptr &&
        (last->op != op::identity || body->producer(body->inputs(*last)[0]) != nullptr))
      return std::nullopt;
    Rewriter::Results present;
    for (const ValueId id : inputs)
      if (id.present()) present.push_back(id);
    return noted(out, node, out.emit(*body, present));
  }

  Changes* changes_;
};

}  // namespace

Rewriter::Rewrite data_movement_rewrite(Changes& changes) {
  return DataMovementRewrite(changes);
}

}  // namespace tessera::passes
