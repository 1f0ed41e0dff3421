#include <algorithm>
#include <optional>
#include <set>

#include "tessera/expr/walk.h"
#include "tessera/lower/group.h"

namespace tessera::lower {

using tile::Schedule;
using tile::Stage;

namespace {

/// Whether elements with different positions along the axis go to different places: it is itself
/// one of the indices.
bool is_apart(const ScatterWrite& forward, const Axis& axis) {
  return std::ranges::any_of(forward.target, [&](const Scalar& index) {
    const auto* own = std::get_if<node::Index>(&index.node());
    return own != nullptr && own->axis == axis.name;
  });
}

/// The writes as a stage of their own.
Stage writes_of(const Stage& stage) {
  const ScatterWrite& forward = *stage.output.forward;
  Stage writes = stage;
  writes.output.axes = each(forward.over);
  writes.output.value = forward.value;
  writes.output.forward.reset();
  std::set<std::string> read;
  const auto look = [&](const Scalar& scalar) {
    for_each_read(scalar, [&](const node::Read& r) { read.insert(r.operand); });
  };
  look(forward.value);
  for (const Scalar& index : forward.target) look(index);
  std::erase_if(writes.operands, [&](const Operand& o) { return !read.contains(o.name); });
  return writes;
}

/// Axes whose positions go to different places are programs and, the last one, vectors; the others
/// are run through in order.
Expected<Schedule> schedule_of(const Stage& writes, const ScatterWrite& forward) {
  constexpr std::int64_t kVector = 256;
  TESSERA_TRY(Schedule schedule, Schedule::of({writes}));
  std::vector<std::string> apart, order;
  std::optional<std::string> vector;
  for (const Axis& axis : forward.over) {
    const tile::Loop* loop = schedule.nest(writes.name()).find(axis.name);
    if (loop == nullptr || !is_apart(forward, axis)) continue;
    apart.push_back(axis.name);
    if (axis.name != forward.over.back().name) continue;
    vector = axis.name;
    if (loop->extent <= kVector) {
      apart.pop_back();
    } else {
      TESSERA_TRY(schedule, schedule.split(axis.name, kVector));
      apart.back() += ".o";
      *vector += ".i";
    }
  }
  order = apart;
  for (const tile::Loop& loop : schedule.nest(writes.name()).loops)
    if (std::ranges::count(apart, loop.name) == 0 && loop.name != vector)
      order.push_back(loop.name);
  if (vector) order.push_back(*vector);
  if (order.size() > 1) {
    TESSERA_TRY(schedule, schedule.reorder(order));
  }
  for (const std::string& loop : apart) {
    TESSERA_TRY(schedule, schedule.parallel(loop));
  }
  if (vector) {
    TESSERA_TRY(schedule, schedule.vectorize(*vector));
  }
  return schedule;
}

}  // namespace

Expected<Attempt> lower_scatter(const Group& group, const machine::Machine& machine,
                                const GroupOptions& options) {
  if (group.stages.size() != 1 || !group.stages[0].output.forward) return Attempt{};
  const Stage& stage = group.stages[0];
  const ScatterWrite& forward = *stage.output.forward;
  Group before{.stages = {stage}, .results = group.results, .weights = group.weights};
  before.stages[0].output.forward.reset();
  std::set<std::string> read;
  for_each_read(stage.output.value, [&](const node::Read& r) { read.insert(r.operand); });
  std::erase_if(before.stages[0].operands,
                [&](const Operand& o) { return !read.contains(o.name); });
  TESSERA_TRY(Attempt code, lower_elementwise(before, machine, options));
  const Stage writes = writes_of(stage);
  TESSERA_TRY(const Schedule schedule, schedule_of(writes, forward));
  TESSERA_TRY(Lowered lowered,
              lower_writes(schedule, {stage.output.shape(), forward.target, forward.combine}));
  code->kernels.push_back(std::move(lowered));
  code->strategy = "scatter";
  return code;
}

}  // namespace tessera::lower
