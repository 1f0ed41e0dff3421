#include "tessera/program/concat_buffers.h"

#include <algorithm>

#include "tessera/program/values.h"

namespace tessera::program {

using runtime::ValueIndex;

ValueIndex ConcatBuffers::buffer_of(ValueId whole) {
  if (const auto it = buffers_.find(whole.index); it != buffers_.end()) return it->second;
  const ValueIndex buffer =
      outputs_.add_result(whole, slots_.order(whole), decisions_.storage[whole.index]);
  buffers_.emplace(whole.index, buffer);
  shared_.insert(buffer);
  return buffer;
}

Place ConcatBuffers::place_in(const ConcatSlot& slot) {
  Place place{buffer_of(slot.whole), slots_.order(slot.whole)};
  lower::TensorBox box{.whole = in_memory(shape_of(graph_, slot.whole), place.order)};
  for (const int axis : place.order)
    box.start.push_back(static_cast<std::size_t>(axis) == slot.axis ? slot.start : 0);
  place.box = std::move(box);
  return place;
}

std::optional<Place> ConcatBuffers::slot_of(ValueId value, const AxisOrder& order) {
  const auto slot = slots_.of(value);
  if (!slot || order != slots_.order(slot->whole)) return std::nullopt;
  return place_in(*slot);
}

/// Whether the result is a part of another one, its buffer exists, or an operand lies in a slot.
Expected<bool> ConcatBuffers::is_in_parts(std::size_t node, ValueId result) {
  if (slots_.of(result) || buffers_.contains(result.index)) return true;
  for (const Concat::Part& part : slots_.concat(node)->parts) {
    const ValueId value = slots_.operand(node, part);
    if (!places_.has(value)) continue;
    TESSERA_TRY(const Place place, places_.strided(value));
    if (place.box) return true;
  }
  return false;
}

Expected<bool> ConcatBuffers::finish(const NodeGroup& group) {
  if (group.kind != NodeKind::Alone || group.nodes.size() != 1) return false;
  const std::size_t node = group.nodes[0];
  const auto& concat = slots_.concat(node);
  if (!concat) return false;
  const ValueId result = group.results[0];
  TESSERA_TRY(const bool in_parts, is_in_parts(node, result));
  if (!in_parts) return false;
  const ConcatSlot base = slots_.of(result).value_or(ConcatSlot{result, concat->axis, 0});
  for (const Concat::Part& part : concat->parts) {
    const ValueId value = slots_.operand(node, part);
    const std::int64_t start = base.start + part.begin;
    const Place to = place_in({base.whole, base.axis, start});
    TESSERA_TRY(const Place from, places_.strided(value));
    const bool is_there = from.value == to.value && from.box && from.box->start == to.box->start;
    if (is_there || !copied_.emplace(to.value, start).second) continue;
    TESSERA_TRY_DONE(places_.add_reorder(value, from, to, graph_.nodes()[node].op->name));
  }
  Place place = place_in(base);
  if (base.whole == result) place.box.reset();
  places_.set(result, std::move(place));
  return true;
}

}  // namespace tessera::program
