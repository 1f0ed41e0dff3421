#include "tessera/passes/narrow.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tessera/expr/affine.h"
#include "tessera/expr/shape.h"
#include "tessera/expr/text.h"
#include "tessera/expr/transform.h"
#include "tessera/expr/walk.h"
#include "tessera/ir/infer.h"
#include "tessera/passes/dce.h"
#include "tessera/passes/writer.h"

namespace tessera::passes {
namespace {

using Extents = std::vector<std::int64_t>;
using IndexForm = tessera::Affine<std::string>;

/// Positions from `begin` on, `size` of them.
struct AxisRange {
  std::int64_t begin = 0, size = 0;
};
using IndexBox = std::vector<AxisRange>;

constexpr std::int64_t kMostTaps = 64;  // of a sum that is looked through: windows are small
constexpr std::string_view kPads = "pads", kAutoPad = "auto_pad", kNoAutoPad = "NOTSET";

/// Affine form of an index over axes; nothing for other expressions.
std::optional<IndexForm> affine_index(const Scalar& scalar, const Sizes& sizes) {
  if (const auto number = scalar.integer()) return IndexForm::constant(*number);
  if (const auto* index = std::get_if<node::Index>(&scalar.node()))
    return IndexForm::of(index->axis);
  if (const auto* size = std::get_if<node::Size>(&scalar.node())) {
    const auto number = resolved(size->dim, sizes).constant();
    return number ? std::optional(IndexForm::constant(*number)) : std::nullopt;
  }
  const auto* apply = std::get_if<node::Apply>(&scalar.node());
  if (apply == nullptr) return std::nullopt;
  std::vector<IndexForm> args;
  for (const Scalar& arg : apply->args) {
    const auto form = affine_index(arg, sizes);
    if (!form) return std::nullopt;
    args.push_back(*form);
  }
  switch (apply->fn) {
    case Fn::Add: return args[0].plus(args[1]);
    case Fn::Sub: return args[0].plus(args[1], -1);
    case Fn::Neg: return args[0].times(-1);
    case Fn::Mul:
      if (args[0].is_constant()) return args[1].times(args[0].base);
      if (args[1].is_constant()) return args[0].times(args[1].base);
      return std::nullopt;
    default: return std::nullopt;
  }
}

/// Definition of a node on operands of known sizes: where each of its reads is, and the rest.
struct NodeForm {
  struct Access {
    std::size_t operand = 0;  // number among the present inputs
    std::vector<IndexForm> at = {};
    bool is_guarded = false;
  };
  std::vector<Access> accesses;
  std::map<std::string, std::int64_t> extents;  // of all axes
  std::vector<std::vector<std::string>> axes;   // of the output
  /// Axes of sums of products with a factor that is 0 outside of its operand: terms in which it is
  /// always outside may be left out if the other operands of the product are finite.
  std::map<std::string, std::set<std::size_t>> sums;  // by axis: these other operands
  std::string rest;                                   // the expression without indices, as text
  Extents shape;
};

/// Extents of the axes of outputs and folds; false where one is no number.
bool add_extents(const Output& output, const Sizes& sizes, NodeForm& form) {
  bool known = true;
  const auto add = [&](const std::string& axis, const std::optional<std::int64_t>& extent) {
    known = known && extent && form.extents.emplace(axis, *extent).second;
  };
  for (const MergedAxis& merged : output.axes) {
    std::vector<std::string>& names = form.axes.emplace_back();
    std::int64_t size = 1;
    for (const Axis& part : merged.parts) {
      const auto extent = resolved(part.size(), sizes).constant();
      add(part.name, extent);
      names.push_back(part.name);
      size *= extent.value_or(0);
    }
    form.shape.push_back(size);
  }
  std::set<const Fold*> seen;
  for_each_within(output.value, [&](const Scalar& part) {
    const auto* component = std::get_if<node::Component>(&part.node());
    if (component == nullptr || !seen.insert(component->fold.get()).second) return;
    for (const Bound& bound : component->fold->bounds) {
      const auto extent = affine_index(bound.extent, sizes);
      add(bound.axis, extent && extent->is_constant() ? std::optional(extent->base) : std::nullopt);
    }
  });
  return known;
}

/// Operand number of a plain or guarded read.
std::size_t operand_of(const Definition& definition, const node::Read& read) {
  const auto operand = std::ranges::find(definition.inputs, read.operand, &Operand::name);
  return static_cast<std::size_t>(operand - definition.inputs.begin());
}

/// Finds the sums of products of two reads, of which one is 0 outside of its operand.
void add_sums(const Definition& definition, NodeForm& form) {
  for_each_within(definition.outputs[0].value, [&](const Scalar& part) {
    const auto* component = std::get_if<node::Component>(&part.node());
    if (component == nullptr || component->fold->simple() != Fn::Add) return;
    const auto* product = std::get_if<node::Apply>(&component->fold->lift[0].node());
    if (product == nullptr || product->fn != Fn::Mul) return;
    const auto* a = std::get_if<node::Read>(&product->args[0].node());
    const auto* b = std::get_if<node::Read>(&product->args[1].node());
    if (a == nullptr || b == nullptr) return;
    if (a->otherwise == nullptr) std::swap(a, b);
    if (a->otherwise == nullptr || b->otherwise != nullptr || !is_zero(*a->otherwise)) return;
    for (const Bound& bound : component->fold->bounds)
      form.sums[bound.axis].insert(operand_of(definition, *b));
  });
}

/// Sizes that are extents of sums and nothing else: what remains of an expression without them is
/// the same for fewer terms.
std::set<Dim> sizes_of_sums(const Scalar& value, const NodeForm& form) {
  std::set<Dim> extents;
  std::map<Dim, int> values;
  for_each_within(value, [&](const Scalar& part) {
    if (const auto* size = std::get_if<node::Size>(&part.node())) ++values[size->dim];
    const auto* component = std::get_if<node::Component>(&part.node());
    if (component == nullptr) return;
    for (const Bound& bound : component->fold->bounds)
      if (const auto* size = std::get_if<node::Size>(&bound.extent.node());
          size != nullptr && form.sums.contains(bound.axis))
        extents.insert(size->dim);
  });
  std::erase_if(extents, [&](const Dim& size) { return values[size] > 1; });
  return extents;
}

std::optional<NodeForm> form_of(const OpDef& op, const Attrs& attrs,
                                const std::vector<ValueInfo>& inputs) {
  const auto signature = signature_of(inputs);
  if (op.kind() != OpDef::Kind::Core || !op.pure || !signature) return std::nullopt;
  const auto definition = op.define(attrs, *signature);
  if (!definition || definition->outputs.size() != 1 || definition->outputs[0].forward)
    return std::nullopt;
  const auto sizes = solve_sizes(*definition, shapes_of(*signature));
  if (!sizes) return std::nullopt;
  NodeForm form;
  const Output& output = definition->outputs[0];
  if (!add_extents(output, *sizes, form)) return std::nullopt;
  bool is_affine = true;
  add_sums(*definition, form);
  const std::set<Dim> of_sums = sizes_of_sums(output.value, form);
  Transform blank;
  blank.size = [&](const Dim& size) {
    return of_sums.contains(size) ? size : resolved(size, *sizes);
  };
  blank.read = [&](const node::Read& read) -> std::optional<Scalar> {
    NodeForm::Access access{.is_guarded = read.otherwise != nullptr};
    access.operand = operand_of(*definition, read);
    for (const Scalar& index : read.at) {
      const auto at = affine_index(index, *sizes);
      is_affine = is_affine && at;
      access.at.push_back(at.value_or(IndexForm{}));
    }
    form.accesses.push_back(std::move(access));
    return Scalar(Node(node::Read{read.operand,
                                  read.sort,
                                  {Scalar(static_cast<std::int64_t>(form.accesses.size()))},
                                  read.otherwise}));
  };
  // Indices outside of accesses are values, which a shift would change.
  const Scalar value = blank(output.value);
  if (!is_affine) return std::nullopt;
  for_each_within(value, [&](const Scalar& part) {
    is_affine = is_affine && !std::holds_alternative<node::Index>(part.node());
  });
  if (!is_affine) return std::nullopt;
  form.rest = to_text(value);
  return form;
}

/// Range of an index while the output is in the box.
struct IndexRange {
  std::int64_t low = 0, high = 0;
  bool is_narrowed = false;  // depends on an axis that the box restricts
};

IndexRange range_of(const IndexForm& index, const NodeForm& form,
                    const std::map<std::string, AxisRange>& restricted) {
  IndexRange range{index.base, index.base};
  for (const auto& [axis, factor] : index.terms) {
    AxisRange run{0, form.extents.at(axis)};
    if (const auto it = restricted.find(axis); it != restricted.end()) {
      run = it->second;
      range.is_narrowed = true;
    }
    const std::int64_t first = factor * run.begin, last = factor * (run.begin + run.size - 1);
    range.low += std::min(first, last);
    range.high += std::max(first, last);
  }
  return range;
}

/// Terms of the sums along an axis in which a guarded factor may be inside of its operand while the
/// output is in the box: all others add zeros.
AxisRange terms_inside(const NodeForm& form, const std::string& axis,
                       const std::vector<ValueInfo>& operands,
                       const std::map<std::string, AxisRange>& restricted) {
  const std::int64_t count = form.extents.at(axis);
  const auto is_inside = [&](std::int64_t term) {
    std::map<std::string, AxisRange> fixed = restricted;
    fixed[axis] = {term, 1};
    return std::ranges::all_of(form.accesses, [&](const NodeForm::Access& access) {
      for (std::size_t i = 0; access.is_guarded && i < access.at.size(); ++i) {
        const IndexRange range = range_of(access.at[i], form, fixed);
        const std::int64_t size = operands[access.operand].type.shape->at(i).constant().value_or(0);
        if (range.high < 0 || range.low >= size) return false;
      }
      return true;
    });
  };
  std::int64_t begin = 0, end = count;
  while (begin < end && !is_inside(begin)) ++begin;
  while (end > begin && !is_inside(end - 1)) --end;
  return {begin, end - begin};
}

/// Narrowed form of a node: the box of each operand, and the attributes.
struct NarrowedNode {
  std::vector<IndexBox> operands;
  Attrs attrs;
};

/// Whether each access of the new definition is that of the old one, shifted by the box of the
/// result and by those of the operands.
bool is_shifted(const NodeForm& before, const NodeForm& after,
                const std::map<std::string, AxisRange>& restricted,
                const std::vector<IndexBox>& operands) {
  if (before.rest != after.rest || before.accesses.size() != after.accesses.size()) return false;
  for (const auto& [axis, extent] : before.extents) {
    const auto now = after.extents.find(axis);
    const auto part = restricted.find(axis);
    const std::int64_t expected = part == restricted.end() ? extent : part->second.size;
    if (now == after.extents.end() || now->second != expected) return false;
  }
  for (std::size_t i = 0; i < before.accesses.size(); ++i) {
    const NodeForm::Access &old = before.accesses[i], &now = after.accesses[i];
    if (old.operand != now.operand || old.is_guarded != now.is_guarded) return false;
    for (std::size_t axis = 0; axis < old.at.size(); ++axis) {
      IndexForm shifted = old.at[axis];
      for (const auto& [name, part] : restricted)
        shifted.base += old.at[axis].factor(name) * part.begin;
      shifted.base -= operands[old.operand][axis].begin;
      if (shifted != now.at[axis]) return false;
    }
  }
  return true;
}

/// Narrows a node to a box of its result; terms of sums that only add zeros are left out where the
/// operands in `finite`, by number among the present ones, allow it.
std::optional<NarrowedNode> narrowed(const OpDef& op, const Attrs& attrs,
                                     const std::vector<ValueInfo>& inputs, const IndexBox& box,
                                     const std::set<std::size_t>& finite) {
  const std::optional<NodeForm> form = form_of(op, attrs, inputs);
  if (!form || form->shape.size() != box.size()) return std::nullopt;
  std::map<std::string, AxisRange> restricted;
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    if (box[axis].size == form->shape[axis]) continue;
    if (form->axes[axis].size() != 1) return std::nullopt;
    restricted.emplace(form->axes[axis][0], box[axis]);
  }
  std::vector<ValueInfo> present;
  for (const ValueInfo& input : inputs)
    if (input.present) present.push_back(input);
  for (const auto& [axis, factors] : form->sums) {
    if (!std::ranges::includes(finite, factors) || form->extents.at(axis) > kMostTaps) continue;
    const AxisRange terms = terms_inside(*form, axis, present, restricted);
    if (terms.size > 0 && terms.size < form->extents.at(axis)) restricted.emplace(axis, terms);
  }
  NarrowedNode made{.operands = {}, .attrs = attrs};
  for (const ValueInfo& input : present) {
    IndexBox& whole = made.operands.emplace_back();
    const auto shape = static_shape(input.type);
    if (!shape) return std::nullopt;
    for (const std::int64_t size : *shape) whole.push_back({0, size});
  }
  const auto* pads = attrs.has(kPads) ? std::get_if<Ints>(&*attrs.find(kPads)) : nullptr;
  Ints new_pads;
  std::vector<std::set<std::size_t>> seen(present.size());
  for (const NodeForm::Access& access : form->accesses)
    for (std::size_t axis = 0; axis < access.at.size(); ++axis) {
      const IndexRange range = range_of(access.at[axis], *form, restricted);
      if (!range.is_narrowed) continue;
      const std::int64_t size = present[access.operand].type.shape->at(axis).constant().value_or(0);
      const std::int64_t low = std::max<std::int64_t>(range.low, 0);
      const std::int64_t high = std::min(range.high, size - 1);
      if (low > high || (!access.is_guarded && (low != range.low || high != range.high)))
        return std::nullopt;
      // Two accesses of one operand have one cone, or the node stays.
      AxisRange& cone = made.operands[access.operand][axis];
      const bool first = seen[access.operand].insert(axis).second;
      if (!first && (cone.begin != low || cone.size != high - low + 1)) return std::nullopt;
      cone = {low, high - low + 1};
      if (!access.is_guarded) continue;
      const std::size_t spatial = access.at.size() - 2;
      if (access.at.size() < 3 || axis < 2) return std::nullopt;
      if (new_pads.empty()) {
        new_pads = pads != nullptr && pads->size() == 2 * spatial ? *pads : Ints(2 * spatial, 0);
        // Axes that stay whole keep the padding that the definition has.
        for (std::size_t other = 2; other < access.at.size(); ++other) {
          const IndexRange all = range_of(access.at[other], *form, {});
          const std::int64_t whole =
              present[access.operand].type.shape->at(other).constant().value_or(0);
          new_pads[other - 2] = std::max<std::int64_t>(0, -all.low);
          new_pads[other - 2 + spatial] = std::max<std::int64_t>(0, all.high - (whole - 1));
        }
      }
      if (new_pads.size() != 2 * spatial) return std::nullopt;
      new_pads[axis - 2] = low - range.low;
      new_pads[axis - 2 + spatial] = range.high - high;
    }
  if (!new_pads.empty()) {
    if (pads == nullptr) return std::nullopt;
    made.attrs.set(std::string(kPads), new_pads);
    if (attrs.has(kAutoPad)) made.attrs.set(std::string(kAutoPad), std::string(kNoAutoPad));
  }
  std::vector<ValueInfo> parts = inputs;
  std::size_t next = 0;
  for (ValueInfo& part : parts) {
    if (!part.present) continue;
    const IndexBox& cone = made.operands[next++];
    bool whole = true;
    for (std::size_t axis = 0; axis < cone.size(); ++axis) {
      whole = whole && part.type.shape->at(axis).is(cone[axis].size);
      part.type.shape->at(axis) = Dim(cone[axis].size);
    }
    if (whole) continue;
    part.value.reset();
    part.content.reset();
  }
  const std::optional<NodeForm> after = form_of(op, made.attrs, parts);
  if (!after || !is_shifted(*form, *after, restricted, made.operands)) return std::nullopt;
  return made;
}

/// Box that a slice of step 1 takes; nothing for other slices.
std::optional<IndexBox> sliced_box(const Graph& graph, const GraphNode& node) {
  if (node.op != op::slice) return std::nullopt;
  const auto inputs = graph.inputs(node);
  const auto from = static_shape(graph.type(inputs[0])),
             to = static_shape(graph.type(graph.outputs(node)[0]));
  const auto numbers = [&](std::size_t i) -> std::optional<Ints> {
    if (i >= inputs.size() || !inputs[i].present()) return std::nullopt;
    const Tensor* constant = graph.constant(inputs[i]);
    if (constant == nullptr) return std::nullopt;
    return integers_of(*constant);
  };
  const auto starts = numbers(1);
  if (!from || !to || !starts) return std::nullopt;
  if (inputs.size() > 4 && inputs[4].present()) {
    const auto steps = numbers(4);
    if (!steps || std::ranges::any_of(*steps, [](std::int64_t step) { return step != 1; }))
      return std::nullopt;
  }
  Ints axes;
  if (inputs.size() > 3 && inputs[3].present()) {
    const auto given = numbers(3);
    if (!given) return std::nullopt;
    axes = *given;
  } else {
    for (std::size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  const auto rank = static_cast<std::int64_t>(from->size());
  IndexBox box;
  for (const std::int64_t size : *to) box.push_back({0, size});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i] < 0 ? axes[i] + rank : axes[i]);
    const std::int64_t size = (*from)[axis], start = (*starts)[i];
    box[axis].begin = std::clamp<std::int64_t>(start < 0 ? start + size : start, 0, size);
  }
  const bool empty = std::ranges::any_of(box, [](const AxisRange& run) { return run.size == 0; });
  return empty ? std::nullopt : std::optional(std::move(box));
}

std::int64_t elements_in(const IndexBox& box) {
  std::int64_t count = 1;
  for (const AxisRange& run : box) count *= run.size;
  return count;
}

/// Values that slices alone read, which take fewer elements together than there are.
std::vector<bool> read_in_part(const Graph& graph) {
  std::vector<std::int64_t> taken(graph.value_count(), 0);
  std::vector<bool> others(graph.value_count(), false);
  for (const ValueId id : graph.outputs()) others[id.index] = true;
  for (const GraphNode& node : graph.nodes()) {
    const auto box = sliced_box(graph, node);
    const auto inputs = graph.inputs(node);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].present()) continue;
      if (i == 0 && box)
        taken[inputs[i].index] += elements_in(*box);
      else
        others[inputs[i].index] = true;
    }
  }
  std::vector<bool> result(graph.value_count(), false);
  for (std::uint32_t v = 0; v < graph.value_count(); ++v) {
    const auto shape = static_shape(graph.type(ValueId{v}));
    result[v] = !others[v] && shape && taken[v] > 0 && taken[v] < product(*shape);
  }
  return result;
}

std::vector<ValueInfo> operand_infos(const Graph& graph, const GraphNode& node) {
  std::vector<ValueInfo> infos;
  for (const ValueId id : graph.inputs(node)) {
    if (!id.present())
      infos.push_back({.present = false});
    else if (const Tensor* constant = graph.constant(id))
      infos.push_back(constant_info(*constant));
    else
      infos.push_back({.type = graph.type(id)});
  }
  return infos;
}

/// Operands, by number among the present ones, that are constants without infinities and NaN.
std::set<std::size_t> finite_operands(const Graph& graph, const GraphNode& node) {
  std::set<std::size_t> finite;
  std::size_t number = 0;
  for (const ValueId id : graph.inputs(node)) {
    if (!id.present()) continue;
    const Tensor* constant = graph.constant(id);
    bool all = constant != nullptr && is_float(constant->dtype);
    for (std::int64_t i = 0; all && i < constant->count(); ++i)
      all = std::isfinite(number_at(*constant, i));
    if (all) finite.insert(number);
    ++number;
  }
  return finite;
}

/// A box of a concatenation: the parts of it that lie in each operand, concatenated.
///
///   slice(concat(a, b))  =>  concat(slice(a), slice(b))
std::optional<Rebuilder::Results> narrowed_concat(Rebuilder& out, const Graph& graph,
                                                  const GraphNode& concat, const IndexBox& box) {
  const Type& type = graph.type(graph.outputs(concat)[0]);
  const auto rank = static_cast<std::int64_t>(box.size());
  const std::int64_t stated = concat.attrs->i("axis");
  const auto axis = static_cast<std::size_t>(stated < 0 ? stated + rank : stated);
  Writer writer(out, type.dtype);
  std::vector<ValueId> parts;
  std::int64_t begin = 0;
  for (const ValueId id : graph.inputs(concat)) {
    const auto shape = static_shape(graph.type(id));
    if (!shape) return std::nullopt;
    const std::int64_t end = begin + (*shape)[axis];
    const std::int64_t first = std::max(begin, box[axis].begin);
    const std::int64_t last = std::min(end, box[axis].begin + box[axis].size);
    if (first < last) {
      Ints starts, ends;
      Extents sizes;
      for (std::size_t i = 0; i < box.size(); ++i) {
        const AxisRange run = i == axis ? AxisRange{first - begin, last - first} : box[i];
        starts.push_back(run.begin);
        ends.push_back(run.begin + run.size);
        sizes.push_back(run.size);
      }
      parts.push_back(writer.add(
          op::slice, {}, {out.mapped(id), writer.integers(starts), writer.integers(ends)}, sizes));
    }
    begin = end;
  }
  if (parts.size() == 1) return Rebuilder::Results{parts[0]};
  Extents sizes;
  for (const AxisRange& run : box) sizes.push_back(run.size);
  return Rebuilder::Results{
      writer.add(op::concat, {{"axis", static_cast<std::int64_t>(axis)}}, parts, sizes)};
}

/// One level: operators that slices read.
Graph narrowed_once(const Graph& graph, bool& changed) {
  const std::vector<bool> in_part = read_in_part(graph);
  return rebuild(graph, [&](Rebuilder& out, const GraphNode& node) {
    const auto box = sliced_box(graph, node);
    const ValueId from = box ? graph.inputs(node)[0] : ValueId{};
    const GraphNode* producer = box && in_part[from.index] ? graph.producer(from) : nullptr;
    if (producer == nullptr || graph.outputs(*producer).size() != 1 ||
        !graph.subgraphs(*producer).empty())
      return out.copy(node);
    if (producer->op == op::concat)
      if (auto parts = narrowed_concat(out, graph, *producer, *box)) {
        changed = true;
        return *std::move(parts);
      }
    const std::vector<ValueInfo> infos = operand_infos(graph, *producer);
    auto made =
        narrowed(*producer->op, *producer->attrs, infos, *box, finite_operands(graph, *producer));
    if (!made) made = narrowed(*producer->op, *producer->attrs, infos, *box, {});
    if (!made) return out.copy(node);
    changed = true;
    std::vector<ValueId> operands;
    std::size_t next = 0;
    for (const ValueId id : graph.inputs(*producer)) {
      if (!id.present()) {
        operands.push_back(id);
        continue;
      }
      const IndexBox& cone = made->operands[next++];
      Ints starts, ends;
      Extents sizes;
      for (const AxisRange& run : cone) {
        starts.push_back(run.begin);
        ends.push_back(run.begin + run.size);
        sizes.push_back(run.size);
      }
      ValueId operand = out.mapped(id);
      if (sizes != *static_shape(graph.type(id))) {
        Writer writer(out, graph.type(id).dtype);
        operand = writer.add(op::slice, {},
                             {operand, writer.integers(starts), writer.integers(ends)}, sizes);
      }
      operands.push_back(operand);
    }
    return out.add({.op = producer->op,
                    .attrs = made->attrs,
                    .inputs = std::move(operands),
                    .outputs = {graph.type(graph.outputs(node)[0])}});
  });
}

}  // namespace

Graph narrow(const Graph& graph) {
  constexpr int kMostLevels = 16;
  Graph current = graph;
  for (int level = 0; level < kMostLevels; ++level) {
    bool changed = false;
    Graph next = narrowed_once(current, changed);
    if (!changed) break;
    current = without_dead(next);
  }
  return current;
}

}  // namespace tessera::passes
