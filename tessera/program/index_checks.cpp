#include "tessera/program/index_checks.h"

#include "tessera/runtime/indices.h"

namespace tessera::program {
namespace {

runtime::step::CheckIndices check_of(const IndexUse& use, const std::vector<std::int64_t>& shape,
                                     const Place& place) {
  runtime::step::CheckIndices step{.at = {.value = place.value, .offset = place.offset},
                                   .count = element_count(shape).value_or(0),
                                   .low = use.low,
                                   .high = use.high};
  if (!use.part) return step;
  step.period = shape[use.part->axis];
  step.phase = use.part->position;
  for (std::size_t i = place.order.size(); place.order[--i] != static_cast<int>(use.part->axis);)
    step.stride *= shape[static_cast<std::size_t>(place.order[i])];
  return step;
}

}  // namespace

bool IndexChecks::are_computed_in(const NodeGroup& group) const {
  if (!checks_computed_) return false;
  const std::set<std::size_t> nodes(group.nodes.begin(), group.nodes.end());
  for (const std::size_t n : group.nodes)
    for (const IndexUse& use : index_uses(graph_, graph_.nodes()[n])) {
      const auto producer = decisions_.producers[decisions_.behind_views(use.indices).index];
      if (producer && nodes.contains(*producer)) return true;
    }
  return false;
}

Expected<std::vector<IndexCheck>> IndexChecks::of(const NodeGroup& group, Places& places) const {
  std::vector<IndexCheck> checks;
  for (const std::size_t n : group.nodes)
    for (const IndexUse& use : index_uses(graph_, graph_.nodes()[n])) {
      if (is_empty(graph_, use.indices)) continue;
      const auto shape = shape_of(graph_, use.indices);
      if (const Tensor* constant = graph_.constant(use.indices)) {
        const auto step = check_of(use, shape, {.order = row_major(shape.size())});
        if (!runtime::index_outside(step, constant->dtype, constant->bytes.data(), 1)) continue;
      }
      if (checked_.contains(use)) continue;
      if (!checks_computed_ && !is_of_caller(use.indices)) continue;
      TESSERA_TRY(const Place place, places.of(use.indices));
      checks.push_back({n, use, check_of(use, shape, place)});
    }
  return checks;
}

void IndexChecks::add(const std::vector<IndexCheck>& checks, DraftBuilder& out) {
  for (const IndexCheck& check : checks) {
    const std::string& name = graph_.node_name(check.node);
    out.add_step(check.step,
                 {name.empty() ? graph_.nodes()[check.node].op->name : name, "check of indices"});
    checked_.insert(check.use);
  }
}

/// An input of the program, or a view of one.
bool IndexChecks::is_of_caller(ValueId value) const {
  const ValueId source = decisions_.behind_views(value);
  return !decisions_.producers[source.index] && graph_.constant(source) == nullptr;
}

}  // namespace tessera::program
