#include "tessera/program/concat_slots.h"

#include <algorithm>

#include "tessera/program/backend.h"
#include "tessera/program/stage.h"

namespace tessera::program {

ConcatSlots::ConcatSlots(const Graph& graph, const Decisions& decisions,
                         const machine::Machine& machine)
    : graph_(graph),
      decisions_(decisions),
      vector_bytes_(machine.vector_bytes),
      slots_(graph.value_count()),
      orders_(graph.value_count()),
      concats_(graph.nodes().size()),
      users_(graph.value_count()),
      groups_(graph.nodes().size(), nullptr),
      is_output_(graph.value_count(), false) {
  if (!backend_of(machine).joins_in_place) return;
  for (const ValueId output : graph.outputs()) is_output_[output.index] = true;
  for (const NodeGroup& group : decisions.grouping.groups)
    for (const std::size_t n : group.nodes) groups_[n] = &group;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    for (const ValueId input : graph.inputs(graph.nodes()[n]))
      if (input.present()) users_[input.index].push_back(n);
    find_concat(n);
  }
  for (std::size_t n = graph.nodes().size(); n-- > 0;)
    if (concats_[n]) assign(n);
}

ValueId ConcatSlots::operand(std::size_t node, const Concat::Part& part) const {
  const auto inputs = graph_.inputs(graph_.nodes()[node]);
  return *std::ranges::find(inputs, part.operand, tensor_name);
}

void ConcatSlots::find_concat(std::size_t node) {
  const Grouping& grouping = decisions_.grouping;
  if (grouping.kinds[node] != NodeKind::Alone || grouping.stages[node].size() != 1) return;
  const ValueId result = graph_.outputs(graph_.nodes()[node])[0];
  const auto inputs = graph_.inputs(graph_.nodes()[node]);
  // What its readers prefer, or how its operands are computed.
  std::optional<AxisOrder> order = order_of(result);
  if (!order && !inputs.empty()) order = order_of(inputs[0]);
  if (!order) return;
  if (std::ranges::any_of(inputs, [&](ValueId input) {
        return input.present() && (is_empty(graph_, input) || decisions_.storage[input.index] !=
                                                                  decisions_.storage[result.index]);
      }))
    return;
  concats_[node] = concat_of(grouping.stages[node][0]);
  if (concats_[node]) orders_[result.index] = std::move(order);
}

/// Layout in which a value is computed, as far as it does not depend on that of operands.
std::optional<AxisOrder> ConcatSlots::order_of(ValueId value) const {
  const auto producer = decisions_.producers[value.index];
  if (!producer) return std::nullopt;
  const std::size_t rank = rank_of(graph_, value);
  if (const NodeGroup* group = groups_[*producer]) {
    if (group->spatial && rank > 2) return channels_last(rank);
    if (group->planar) return row_major(rank);
  }
  if (decisions_.orders[value.index]) return decisions_.orders[value.index];
  return orders_[value.index];
}

void ConcatSlots::assign(std::size_t node) {
  const ValueId result = graph_.outputs(graph_.nodes()[node])[0];
  std::optional<ConcatSlot>& own = slots_[result.index];
  // Operands along another axis are in several pieces of a slot.
  if (own && own->axis != concats_[node]->axis) own.reset();
  if (!own) own = slot_in_later(node);
  const ConcatSlot base =
      own.value_or(ConcatSlot{.whole = result, .axis = concats_[node]->axis, .start = 0});
  for (const Concat::Part& part : concats_[node]->parts) {
    const ValueId value = operand(node, part);
    const ConcatSlot slot{.whole = base.whole, .axis = base.axis, .start = base.start + part.begin};
    if (!slots_[value.index] && is_written_in_parts(value, slot) && is_read_in_parts(value))
      slots_[value.index] = slot;
  }
}

/// Slot of a concatenation whose operands have neighbouring slots of one buffer.
std::optional<ConcatSlot> ConcatSlots::slot_in_later(std::size_t node) const {
  const Concat& concat = *concats_[node];
  const auto& first = slots_[operand(node, concat.parts[0]).index];
  const ValueId result = graph_.outputs(graph_.nodes()[node])[0];
  if (!first || first->axis != concat.axis || !is_read_in_parts(result)) return std::nullopt;
  for (const Concat::Part& part : concat.parts) {
    const auto& slot = slots_[operand(node, part).index];
    if (!slot || slot->whole != first->whole || slot->start != first->start + part.begin)
      return std::nullopt;
  }
  return first;
}

/// Whether a kernel computes the value and can write it into the slot in pieces of a vector at
/// least. A move is computed where it is read, unless only the concatenation reads it.
bool ConcatSlots::is_written_in_parts(ValueId value, const ConcatSlot& slot) const {
  const auto producer = decisions_.producers[value.index];
  if (!producer) return false;
  switch (decisions_.grouping.kinds[*producer]) {
    case NodeKind::Map:
    case NodeKind::Alone:
    case NodeKind::Reduction:
    case NodeKind::Window:
    case NodeKind::Contraction: break;
    case NodeKind::Move:
      if (users_[value.index].size() != 1) return false;
      break;
    default: return false;
  }
  const AxisOrder& order = orders_[slot.whole.index].value();
  const std::vector<std::int64_t> shape = shape_of(graph_, value);
  std::int64_t piece = byte_width(decisions_.storage[value.index]);
  for (std::size_t i = order.size(); i-- > 0;) {
    piece *= shape[static_cast<std::size_t>(order[i])];
    if (static_cast<std::size_t>(order[i]) == slot.axis) break;
  }
  return piece >= vector_bytes_;
}

/// Whether all that reads a value computes as fast from a part of a larger tensor.
bool ConcatSlots::is_read_in_parts(ValueId value) const {
  if (is_output_[value.index]) return false;
  const Grouping& grouping = decisions_.grouping;
  return std::ranges::all_of(users_[value.index], [&](std::size_t n) {
    if (concats_[n]) return true;
    return groups_[n] != nullptr && groups_[n]->kind != NodeKind::Reduction &&
           groups_[n]->parts.empty() &&
           std::ranges::all_of(grouping.stages[n], [&](const tile::Stage& stage) {
             return reads_in_part(grouping.kinds[n], stage, tensor_name(value));
           });
  });
}

}  // namespace tessera::program
