#include "tessera/program/outputs.h"

#include <algorithm>

namespace tessera::program {

using runtime::ValueIndex;
using Home = runtime::Value::Home;

Outputs::Outputs(const Graph& graph, DraftBuilder& out) : graph_(graph), out_(out) {
  for (const ValueId output : graph.outputs()) outputs_.insert(output.index);
}

ValueIndex Outputs::add_result(ValueId result, const AxisOrder& order, std::optional<DType> dtype) {
  const bool direct = is_plain(graph_, result) && outputs_.contains(result.index) &&
                      !of_caller_.contains(result.index) &&
                      same_places(shape_of(graph_, result), order, row_major(order.size()));
  if (!direct) return out_.add_value(value_of(graph_, result, Home::Arena, order, dtype));
  const ValueIndex index =
      out_.add_value(value_of(graph_, result, Home::Output, row_major(order.size())));
  of_caller_.emplace(result.index, index);
  return index;
}

void Outputs::withdraw(const std::vector<ValueId>& results) {
  for (const ValueId result : results) of_caller_.erase(result.index);
}

bool Outputs::is_movable(ValueIndex value) const {
  if (out_.value(value).home != Home::Arena) return false;
  return std::ranges::none_of(out_.draft.program.steps, [&](const runtime::Step& step) {
    const auto* host = std::get_if<runtime::step::Host>(&step);
    return host != nullptr && (std::ranges::count(host->inputs, value) > 0 ||
                               std::ranges::count(host->outputs, value) > 0);
  });
}

Expected<Done> Outputs::finish(Places& places, Boundary boundary) {
  std::vector<ValueIndex>& outputs = out_.draft.program.outputs;
  std::set<ValueIndex> listed;
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueId output = graph_.outputs()[i];
    TESSERA_TRY(const Place place, places.of(output));  // may compute it, where the caller wants it
    const auto it = of_caller_.find(output.index);
    if (it != of_caller_.end() && listed.insert(it->second).second) {
      out_.value(it->second).offset = static_cast<std::int64_t>(i);
      out_.value(it->second).name = graph_.name(output);
      outputs.push_back(it->second);
      continue;
    }
    const bool is_boxed = out_.value(place.value).home == Home::Boxed;
    if (is_boxed || (boundary == Boundary::Inside && places.is_whole(output, place))) {
      outputs.push_back(place.value);
      continue;
    }
    const AxisOrder order = row_major(rank_of(graph_, output));
    const bool in_order = same_places(shape_of(graph_, output), place.order, order);
    if (in_order && places.is_whole(output, place) && is_movable(place.value) &&
        places.dtype_of(place.value) == graph_.type(output).dtype) {
      // A view of a result, all of it: the result is written to the caller's memory.
      runtime::Value moved = value_of(graph_, output, Home::Output, order);
      moved.bytes = out_.value(place.value).bytes;
      moved.offset = static_cast<std::int64_t>(i);
      out_.value(place.value) = std::move(moved);
      outputs.push_back(place.value);
      continue;
    }
    const ValueIndex value = out_.add_value(value_of(graph_, output, Home::Output, order));
    out_.value(value).offset = static_cast<std::int64_t>(i);
    outputs.push_back(value);
    if (in_order && places.dtype_of(place.value) == places.dtype_of(value)) {
      out_.add_copy({.value = place.value, .offset = place.offset}, value);
    } else {
      TESSERA_TRY_DONE(places.add_reorder(output, place, {value, order}));
    }
  }
  return Done{};
}

}  // namespace tessera::program
