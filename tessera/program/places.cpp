#include "tessera/program/places.h"

#include "tessera/program/classify.h"
#include "tessera/program/launches.h"

namespace tessera::program {

using runtime::ValueIndex;

Expected<Place> Places::of(ValueId value) {
  if (const auto it = places_.find(value.index); it != places_.end()) return it->second;
  if (graph_.constant(value) != nullptr) {
    const Place place{add_plain_weight(out_, graph_, value), row_major(rank_of(graph_, value))};
    places_[value.index] = place;
    return place;
  }
  const Grouping& grouping = decisions_.grouping;
  const std::size_t n = *decisions_.producers[value.index];
  const ValueId source = grouping.sources[n];
  switch (grouping.kinds[n]) {
    case NodeKind::View: {
      TESSERA_TRY(places_[value.index], view_of(value, source));
      break;
    }
    case NodeKind::Transpose: {
      TESSERA_TRY(const Place from, of(source));
      places_[value.index] = Place{
          from.value, transposed(from.order, *permutation_of(grouping.stages[n][0])), from.offset};
      break;
    }
    case NodeKind::Move: {
      TESSERA_TRY(const bool is_piece, place_piece(value, n));
      if (!is_piece) TESSERA_TRY_DONE(compute_(n, value));
      break;
    }
    default: TESSERA_CHECK(false, "{} is not computed yet", graph_.name(value));
  }
  return places_.at(value.index);
}

/// A reshape: the operand as it lies in memory, or else a copy of it in the layout that lets the
/// result have the one that its consumers prefer.
Expected<Place> Places::view_of(ValueId value, ValueId source) {
  const std::vector<std::int64_t> from = shape_of(graph_, source), to = shape_of(graph_, value);
  TESSERA_TRY(Place place, of(source));
  std::optional<AxisOrder> order = reshaped(place.order, from, to);
  if (!order) {
    order = decisions_.orders[value.index];
    std::optional<AxisOrder> copied = order ? reshaped(*order, to, from) : std::nullopt;
    if (!copied) order = row_major(to.size());
    TESSERA_TRY(place, in(source, copied.value_or(row_major(from.size()))));
  }
  return Place{place.value, *order, place.offset};
}

/// A part of another value that lies in one piece needs no copy.
Expected<bool> Places::place_piece(ValueId value, std::size_t n) {
  if (decisions_.grouping.stages[n].size() != 1) return false;
  const auto first = piece_of(decisions_.grouping.stages[n][0]);
  const ValueId whole = decisions_.grouping.sources[n];
  if (!first || graph_.constant(whole) != nullptr) return false;
  TESSERA_TRY(const Place from, of(whole));
  const std::int64_t offset = *first * byte_width(dtype_of(from.value));
  if (offset % runtime::kAlignment != 0 || is_outside(whole) ||
      !same_places(shape_of(graph_, whole), from.order, row_major(rank_of(graph_, whole))))
    return false;
  places_[value.index] = Place{from.value, row_major(rank_of(graph_, value)), from.offset + offset};
  return true;
}

Expected<Place> Places::in(ValueId value, const AxisOrder& order) {
  TESSERA_TRY(const Place place, of(value));
  return in(value, order, dtype_of(place.value));
}

Expected<Place> Places::in(ValueId value, const AxisOrder& order, DType dtype) {
  TESSERA_TRY(const Place place, of(value));
  if (same_places(shape_of(graph_, value), place.order, order) && dtype == dtype_of(place.value))
    return Place{place.value, order, place.offset};
  const auto key = std::tuple{value.index, order, dtype};
  if (const auto it = copies_.find(key); it != copies_.end()) return it->second;
  const ValueIndex copy =
      out_.add_value(value_of(graph_, value, runtime::Value::Home::Arena, order, dtype));
  if (!is_outside(value)) TESSERA_TRY_DONE(add_reorder(value, place, {copy, order}));
  return copies_.emplace(key, Place{copy, order}).first->second;
}

Expected<Place> Places::in_full(ValueId value) {
  TESSERA_TRY(const Place place,
              in(value, row_major(rank_of(graph_, value)), graph_.type(value).dtype));
  if (is_whole(value, place)) return place;
  const DType dtype = dtype_of(place.value);
  const auto key = std::tuple{value.index, place.order, dtype};
  if (const auto it = copies_.find(key); it != copies_.end()) return it->second;
  const ValueIndex copy =
      out_.add_value(value_of(graph_, value, runtime::Value::Home::Arena, place.order, dtype));
  out_.add_copy({.value = place.value, .offset = place.offset}, copy);
  return copies_.emplace(key, Place{copy, place.order}).first->second;
}

bool Places::is_whole(ValueId value, const Place& place) const {
  const runtime::Value& whole = out_.value(place.value);
  return !is_plain(graph_, value) ||
         (place.offset == 0 &&
          element_count(shape_of(graph_, value)).value_or(0) * byte_width(whole.dtype) ==
              whole.bytes);
}

/// The value lies with the neighbours, who may have it in any order.
bool Places::is_outside(ValueId value) const {
  return planning_.boundary == Boundary::Inside && !decisions_.producers[value.index] &&
         graph_.constant(value) == nullptr;
}

Expected<Done> Places::add_reorder(ValueId value, const Place& from, const Place& to) {
  if (is_empty(graph_, value)) return Done{};
  const Type& type = graph_.type(value);
  std::vector<Axis> at = axes("i", static_cast<int>(type.shape->size()));
  for (std::size_t i = 0; i < at.size(); ++i) at[i].extent = (*type.shape)[i];
  const Operand source{"from", dtype_of(from.value), *type.shape};
  lower::Group group{.stages = {{.operands = {source},
                                 .output = {.name = "to",
                                            .dtype = dtype_of(to.value),
                                            .axes = each(at),
                                            .value = source(indices(at))},
                                 .sizes = {}}},
                     .results = {"to"},
                     .weights = {}};
  TESSERA_TRY(group.stages, lower::reordered(std::move(group.stages), "from", from.order));
  TESSERA_TRY(group.stages, lower::reordered(std::move(group.stages), "to", to.order));
  TESSERA_TRY(const LoweredGroup code, lowered(group, planning_.lowerings));
  const LaunchOperands operands{
      .values = {{"from", {from.value, from.offset}}, {"to", {to.value, to.offset}}}};
  add_launches(out_, graph_, code, operands, "reorder", 0);
  return Done{};
}

}  // namespace tessera::program
