#include "tessera/program/classify.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tessera/expr/walk.h"
#include "tessera/lower/affine.h"
#include "tessera/lower/bytes.h"
#include "tessera/program/stage.h"

namespace tessera::program {

using tile::Stage;

namespace {

const std::string* axis_of(const Scalar& scalar) {
  const auto* index = std::get_if<node::Index>(&scalar.node());
  return index == nullptr ? nullptr : &index->axis;
}

/// Extents of the axes of the output.
lower::AxisExtents extents_of(const Stage& stage) {
  lower::AxisExtents extents;
  for (const MergedAxis& merged : stage.output.axes)
    for (const Axis& part : merged.parts)
      extents.emplace(part.name, part.size().constant().value_or(1));
  return extents;
}

/// Row-major offset of an element as an affine form of its indices, without axes of size 1.
std::optional<lower::AffineIndex> place_of(const Stage& stage, const std::vector<Scalar>& at,
                                           const Shape& shape) {
  const lower::AxisExtents extents = extents_of(stage);
  const auto is_fixed = [&](const std::string& axis) { return extents.at(axis) == 1; };
  std::optional<lower::AffineIndex> place = lower::AffineIndex{};
  std::int64_t stride = 1;
  for (std::size_t i = at.size(); place && i-- > 0;) {
    const auto index = lower::affine(at[i], extents);
    if (!index) return std::nullopt;
    place = place->plus(index->without(is_fixed), stride);
    stride *= shape[i].constant().value_or(0);
  }
  return place;
}

/// The one read that an element is, if it is nothing else.
const node::Read* only_read(const Stage& stage) {
  const auto* read = std::get_if<node::Read>(&stage.output.value.node());
  return read != nullptr && read->otherwise == nullptr ? read : nullptr;
}

/// Whether the elements are those of the operand, in the same order.
bool is_view(const Stage& stage) {
  return piece_of(stage) == 0 && product(stage.operands[0].shape) == product(stage.output.shape());
}

/// Whether every read is at positions of the output, none twice.
bool reads_own_positions(const Stage& stage) {
  bool own = true;
  for_each_read(stage.output.value, [&](const node::Read& read) {
    std::set<std::string> axes;
    for (const Scalar& index : read.at) {
      const std::string* axis = axis_of(index);
      own = own && (index.integer() || (axis != nullptr && axes.insert(*axis).second));
    }
    own = own && read.otherwise == nullptr;
  });
  for (const MergedAxis& merged : stage.output.axes)
    own = own &&
          std::ranges::count_if(merged.parts, [](const Axis& a) { return !a.size().is(1); }) <= 1;
  return own;
}

bool is_move(const Stage& stage) {
  const node::Read* read = only_read(stage);
  const lower::AxisExtents extents = extents_of(stage);
  const auto is_even = [&](const Scalar& index) {
    const auto form = lower::affine(index, extents);
    return form && form->terms.size() <= 1;
  };
  return read != nullptr && std::ranges::all_of(read->at, is_even) &&
         std::ranges::all_of(stage.output.axes,
                             [](const MergedAxis& merged) { return merged.parts.size() == 1; });
}

/// Whether each factor has positions of its own in the output, and both share some of the sum.
bool is_contraction(const Stage& stage) {
  const auto fold = tile::main_fold(stage);
  const auto factors = fold == nullptr ? std::nullopt : lower::factors_of(stage, *fold);
  if (!factors) return false;
  const std::set<std::string> left = axes_in(factors->first), right = axes_in(factors->second);
  bool left_alone = false, right_alone = false, shared = false, is_batched = false;
  for (const MergedAxis& merged : stage.output.axes)
    for (const Axis& part : merged.parts) {
      if (part.size().is(1)) continue;
      is_batched = is_batched || (left.contains(part.name) && right.contains(part.name));
      left_alone = left_alone || (left.contains(part.name) && !right.contains(part.name));
      right_alone = right_alone || (right.contains(part.name) && !left.contains(part.name));
    }
  int sums = 0;
  for (const Bound& bound : fold->bounds) {
    const bool is_long = tile::number_of_size(bound.extent, stage.sizes).value_or(1) > 1;
    shared = shared || (left.contains(bound.axis) && right.contains(bound.axis) && is_long);
    sums += is_long ? 1 : 0;
  }
  // A vector times a matrix is one too, and so is a convolution with one filter and a window; a
  // depthwise one is not.
  const bool is_vector = fold->bounds.size() == 1 || (!is_batched && sums > 1);
  return shared && (left_alone || right_alone) && (left_alone || is_vector) &&
         (right_alone || is_vector);
}

NodeKind kind_of(const Stage& stage) {
  if (stage.output.forward) return NodeKind::Scatter;
  if (has_fold(stage.output.value)) {
    if (is_contraction(stage)) return NodeKind::Contraction;
    return reduction_of(stage) ? NodeKind::Reduction : NodeKind::Window;
  }
  if (is_view(stage)) return NodeKind::View;
  if (permutation_of(stage)) return NodeKind::Transpose;
  if (is_move(stage) && (piece_of(stage) || !reads_own_positions(stage))) return NodeKind::Move;
  return reads_own_positions(stage) ? NodeKind::Map : NodeKind::Alone;
}

bool is_plain_tensor(const Graph& graph, ValueId value) {
  const Type& type = graph.type(value);
  return static_shape(type).has_value() && type.dtype != DType::String;
}

}  // namespace

std::optional<std::int64_t> piece_of(const Stage& stage) {
  const node::Read* read = only_read(stage);
  if (read == nullptr || stage.operands.size() != 1 ||
      stage.operands[0].dtype != stage.output.dtype)
    return std::nullopt;
  const auto from = place_of(stage, read->at, stage.operands[0].shape);
  const std::vector<Scalar> own(stage.output.axes.begin(), stage.output.axes.end());
  const auto to = place_of(stage, own, stage.output.shape());
  if (!from || !to || from->terms != to->terms) return std::nullopt;
  return from->base - to->base;
}

std::optional<std::vector<int>> permutation_of(const Stage& stage) {
  const node::Read* read = only_read(stage);
  if (read == nullptr || read->at.size() != stage.output.axes.size() ||
      stage.operands.size() != 1 || stage.operands[0].dtype != stage.output.dtype)
    return std::nullopt;
  std::vector<int> result;
  for (const MergedAxis& merged : stage.output.axes) {
    if (merged.parts.size() != 1) return std::nullopt;
    const auto at = std::ranges::find_if(read->at, [&](const Scalar& index) {
      const std::string* axis = axis_of(index);
      return axis != nullptr && *axis == merged.parts[0].name;
    });
    if (at == read->at.end()) return std::nullopt;
    const auto from = static_cast<std::size_t>(at - read->at.begin());
    if (stage.operands[0].shape[from] != merged.parts[0].size()) return std::nullopt;
    result.push_back(static_cast<int>(from));
  }
  return result;
}

std::optional<BoxUpdate> box_update_of(const Stage& stage) {
  const auto* read = std::get_if<node::Read>(&stage.output.value.node());
  if (read == nullptr || read->otherwise == nullptr || stage.operands.size() != 2)
    return std::nullopt;
  const auto* whole = std::get_if<node::Read>(&read->otherwise->node());
  const std::size_t rank = stage.output.axes.size();
  if (whole == nullptr || whole->otherwise != nullptr || whole->operand == read->operand ||
      whole->at.size() != rank || read->at.size() != rank)
    return std::nullopt;
  const lower::AxisExtents extents = extents_of(stage);
  BoxUpdate result{.whole = whole->operand, .update = read->operand};
  for (std::size_t i = 0; i < rank; ++i) {
    const MergedAxis& merged = stage.output.axes[i];
    const std::string* axis = axis_of(whole->at[i]);
    const auto at = lower::affine(read->at[i], extents);
    if (merged.parts.size() != 1 || !at) return std::nullopt;
    const std::string& own = merged.parts[0].name;
    // An axis of one position has no index variable in an affine form.
    const bool is_fixed = extents.at(own) == 1;
    const lower::AffineIndex plain =
        at->without([&](const std::string& name) { return is_fixed && name == own; });
    if ((axis == nullptr || *axis != own) && !(is_fixed && whole->at[i].integer()))
      return std::nullopt;
    if (is_fixed ? !plain.terms.empty()
                 : plain.terms.size() != 1 || plain.terms[0].variable != own ||
                       plain.terms[0].factor != 1)
      return std::nullopt;
    result.start.push_back(-plain.base);
  }
  return result;
}

namespace {

/// Names of the index variables of a stage's output.
std::set<std::string> output_axes(const Stage& stage) {
  std::set<std::string> names;
  for (const MergedAxis& merged : stage.output.axes)
    for (const Axis& part : merged.parts) names.insert(part.name);
  return names;
}

/// Whether an index runs along an axis of the output and one of a reduction.
bool is_window(const Scalar& index, const std::set<std::string>& output) {
  const std::set<std::string> axes = axes_in(index);
  const auto is_own = [&](const std::string& axis) { return output.contains(axis); };
  return std::ranges::any_of(axes, is_own) && !std::ranges::all_of(axes, is_own);
}

}  // namespace

bool is_windowed(const Stage& stage) {
  const std::set<std::string> output = output_axes(stage);
  bool windowed = false;
  for_each_read(stage.output.value, [&](const node::Read& read) {
    for (const Scalar& index : read.at) windowed = windowed || is_window(index, output);
  });
  return windowed;
}

bool is_filter(const Stage& stage) {
  const std::set<std::string> output = output_axes(stage);
  bool windowed = false, summed = true;
  for_each_read(stage.output.value, [&](const node::Read& read) {
    const auto along_window = [&](const Scalar& index) { return is_window(index, output); };
    if (std::ranges::none_of(read.at, along_window)) return;
    windowed = true;
    for (const std::string& axis : axes_in(read.at[0])) summed = summed && !output.contains(axis);
  });
  return windowed && summed;
}

std::optional<std::int64_t> columns_of(const Stage& stage, const std::string& operand) {
  const auto fold = tile::main_fold(stage);
  if (fold == nullptr) return std::nullopt;
  std::set<std::string> used;
  std::int64_t elements = 1;
  for_each_read(stage.output.value, [&](const node::Read& read) {
    if (read.operand != operand) return;
    for (const Scalar& index : read.at) used.merge(axes_in(index));
  });
  for (const Operand& tensor : stage.operands)
    if (tensor.name == operand) elements = product(tensor.shape).constant().value_or(0);
  std::int64_t positions = 1, columns = 1;
  for (const MergedAxis& merged : stage.output.axes)
    for (const Axis& part : merged.parts)
      (used.contains(part.name) ? positions : columns) *= part.size().constant().value_or(1);
  for (const Bound& bound : fold->bounds)
    positions *= tile::number_of_size(bound.extent, stage.sizes).value_or(1);
  if (positions != elements) return std::nullopt;
  return columns;
}

std::optional<ReductionOf> reduction_of(const Stage& stage) {
  const auto fold = tile::main_fold(stage);
  if (fold == nullptr) return std::nullopt;
  std::optional<ReductionOf> result;
  bool fits = true;
  for_each_read(stage.output.value, [&](const node::Read& read) {
    ReductionOf one{.operand = read.operand, .folded = {}};
    std::set<std::string> axes;
    for (const Scalar& index : read.at) {
      const std::string* axis = axis_of(index);
      fits = fits && (index.integer() || (axis != nullptr && axes.insert(*axis).second));
      one.folded.push_back(
          axis != nullptr &&
          std::ranges::any_of(fold->bounds, [&](const Bound& b) { return b.axis == *axis; }));
    }
    fits = fits && read.otherwise == nullptr;
    if (result && (result->operand != one.operand || result->folded != one.folded)) fits = false;
    result = std::move(one);
  });
  if (!fits || !result || std::ranges::count(result->folded, true) == 0) return std::nullopt;
  return result;
}

bool reads_beyond(const Stage& stage, const std::string& tensor) {
  bool beyond = false;
  for_each_read(stage.output.value, [&](const node::Read& read) {
    beyond = beyond || (read.operand == tensor && read.otherwise != nullptr);
  });
  return beyond;
}

NodeClass classify(const Graph& graph, const GraphNode& node) {
  for (const ValueId input : graph.inputs(node))
    if (input.present() && !is_plain_tensor(graph, input))
      return {.why = "the sizes of its operands depend on data"};
  for (const ValueId output : graph.outputs(node))
    if (!is_plain_tensor(graph, output)) return {.why = "the sizes of its result depend on data"};
  if (node.op->kind() != OpDef::Kind::Core)
    return {.why = node.op->kind() == OpDef::Kind::Control
                       ? "control flow: no code generation, interpreter fallback"
                       : "no code generation, interpreter fallback"};
  auto made = stages_of_node(graph, node);
  if (!made) return {.why = made.error().message};
  NodeClass result{.kind = kind_of((*made)[0]), .stages = *std::move(made)};
  // Several results of one node (split) are each for themselves.
  for (const Stage& stage : result.stages)
    if (kind_of(stage) != result.kind) result.kind = NodeKind::Alone;
  if (result.stages.size() > 1 && result.kind != NodeKind::Move) result.kind = NodeKind::Alone;
  if (result.kind != NodeKind::View && result.kind != NodeKind::Transpose &&
      result.kind != NodeKind::Move)
    return result;

  // Not always the first input: 0 + x is a view of x.
  const node::Read* read = only_read(result.stages[0]);
  for (const ValueId input : graph.inputs(node))
    if (input.present() && tensor_name(input) == read->operand) result.source = input;
  const bool one_source = std::ranges::all_of(result.stages, [&](const Stage& stage) {
    return only_read(stage)->operand == read->operand;
  });
  if (!one_source) result.kind = NodeKind::Alone;
  if (result.kind == NodeKind::View) {
    // One that adds or takes away axes of one position may be computed along with others.
    auto from = *static_shape(graph.type(result.source)),
         to = *static_shape(graph.type(graph.outputs(node)[0]));
    std::erase(from, 1);
    std::erase(to, 1);
    if (from != to) result.stages.clear();
  }
  return result;
}

}  // namespace tessera::program
