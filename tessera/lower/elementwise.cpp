#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "tessera/expr/transform.h"
#include "tessera/expr/walk.h"
#include "tessera/lower/direct_conv.h"
#include "tessera/lower/group.h"

namespace tessera::lower {

using tile::Schedule;
using tile::Stage;

namespace {

/// The axis of an operand that the last loop of the output runs along in all of its reads, if there
/// is one such and it is not the last.
std::optional<int> axis_of_vectors(const Stage& stage, const tile::Nest& nest,
                                   const std::string& operand) {
  std::string last;
  for (const tile::Loop& loop : nest.loops)
    if (!loop.reduces && loop.extent > 1) last = loop.name;
  std::optional<int> found;
  bool differs = false;
  for_each_read(stage.output.value, [&](const node::Read& read) {
    if (read.operand != operand) return;
    for (std::size_t i = 0; i < read.at.size(); ++i) {
      const auto loops = tile::loops_of(nest, read.at[i]);
      if (std::ranges::find(loops, last) == loops.end()) continue;
      differs = differs || (found && *found != static_cast<int>(i));
      found = static_cast<int>(i);
    }
  });
  return differs ? std::nullopt : found;
}

/// Has a weight that is read across memory laid out anew, once, so that vectors of it are
/// contiguous: [c, r, s] as [r, s, c].
Expected<Done> pack_weights(Stage& stage, const Group& group, std::vector<Packing>& packings) {
  TESSERA_TRY(const Schedule plain, Schedule::of({stage}));
  for (const Operand& operand : std::vector<Operand>(stage.operands)) {
    if (!group.weights.contains(operand.name)) continue;
    const auto axis = axis_of_vectors(stage, plain.nest(stage.name()), operand.name);
    const auto rank = static_cast<int>(operand.shape.size());
    if (!axis || *axis + 1 == rank) continue;
    std::vector<int> order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    order.erase(order.begin() + *axis);
    order.push_back(*axis);

    const std::string packed = fmt::format("{}.{}", operand.name, fmt::join(order, "_"));
    Operand weight = operand;
    for (Dim& dim : weight.shape) dim = resolved(dim, stage.sizes);
    std::vector<Axis> axes;
    for (const Dim& dim : weight.shape) axes.push_back({fmt::format("i{}", axes.size()), dim});
    Output output{packed, weight.dtype, {}, weight(indices(axes))};
    for (const int i : order) output.axes.push_back({{axes[static_cast<std::size_t>(i)]}});
    if (std::ranges::none_of(
            packings, [&](const Packing& p) { return p.definition.outputs[0].name == packed; }))
      packings.push_back({weight.name, {.inputs = {weight}, .outputs = {output}}});

    Transform transform;
    transform.read = [&](const node::Read& read) -> std::optional<Scalar> {
      if (read.operand != operand.name) return std::nullopt;
      return Scalar(Node(node::Read{packed, read.sort, read.at, read.otherwise}));
    };
    stage.output.value = transform(stage.output.value);
    for (Operand& o : stage.operands)
      if (o.name == operand.name) o.name = packed;
    TESSERA_TRY(tile::Stages stages, reordered({stage}, packed, order));
    stage = std::move(stages.front());
  }
  return Done{};
}

/// Default schedule of one stage: direct convolution where it applies.
Expected<Schedule> stage_schedule(const Stage& stage, const machine::Machine& machine,
                                  const LoopParameters& parameters, bool& is_direct) {
  TESSERA_TRY(std::optional<Schedule> direct, direct_conv_schedule(stage, machine, parameters));
  if (!direct) {
    TESSERA_TRY(direct, direct_filter_schedule(stage, machine, parameters));
  }
  is_direct = direct.has_value();
  if (direct) return *std::move(direct);
  return default_schedule({stage}, machine, parameters);
}

/// Steps of the schedules of all stages; none where one cannot be scheduled.
std::optional<LoopsSchedule> loops_schedule(const Group& group, const machine::Machine& machine,
                                            const LoopParameters& parameters, bool& is_direct) {
  LoopsSchedule schedule;
  std::vector<Packing> packings;
  for (const Stage& original : group.stages) {
    Stage stage = original;
    if (!pack_weights(stage, group, packings)) return std::nullopt;
    auto made = stage_schedule(stage, machine, parameters, is_direct);
    if (!made) return std::nullopt;
    schedule.stages.push_back(made->steps());
  }
  return schedule;
}

}  // namespace

Expected<Attempt> lower_elementwise(const Group& group, const machine::Machine& machine,
                                    const GroupOptions& options) {
  GroupCode code;
  LoopsSchedule used;
  const LoopsSchedule* given =
      options.schedule ? &std::get<LoopsSchedule>(*options.schedule) : nullptr;
  if (given != nullptr && given->stages.size() != group.stages.size())
    return illegal_schedule("the group has another number of stages");
  for (const Stage& original : group.stages) {
    Stage stage = original;
    TESSERA_TRY_DONE(pack_weights(stage, group, code.packings));
    TESSERA_TRY(Schedule schedule, Schedule::of({stage}));
    bool is_direct = false;
    if (given != nullptr) {
      TESSERA_TRY(schedule, schedule.apply(given->stages[used.stages.size()]));
    } else {
      TESSERA_TRY(schedule, stage_schedule(stage, machine, {}, is_direct));
    }
    code.strategy = given != nullptr ? "loops" : is_direct ? "direct conv" : "elementwise";
    used.stages.push_back(schedule.steps());
    TESSERA_TRY(std::vector<Lowered> kernels, lower(schedule));
    std::ranges::move(kernels, std::back_inserter(code.kernels));
    if (std::ranges::find(group.results, stage.name()) == group.results.end()) {
      TESSERA_TRY(const std::vector<Operand> tensors, tensors_of({stage}));
      code.temporaries.push_back(*std::ranges::find(tensors, stage.name(), &Operand::name));
    }
  }
  code.schedule = std::move(used);
  return Attempt(std::move(code));
}

ScheduleCandidates loops_space(const Group& group, const machine::Machine& machine,
                               const GroupOptions& options) {
  ScheduleCandidates space;
  // Vectors of a reduction change the order of its additions.
  if (options.exact && std::ranges::any_of(group.stages, [](const Stage& stage) {
        return has_fold(stage.output.value);
      }))
    return space;
  const auto add = [&](const LoopParameters& parameters, bool only_direct) {
    bool is_direct = false;
    auto schedule = loops_schedule(group, machine, parameters, is_direct);
    if (!schedule || (only_direct && !is_direct)) return false;
    const auto same = [&](const ScheduleCandidate& one) {
      return std::get<LoopsSchedule>(one.schedule) == *schedule;
    };
    if (std::ranges::none_of(space, same)) space.push_back({*std::move(schedule), 0});
    return is_direct;
  };
  // A contraction without a small window is left to lower_contraction.
  const bool is_contraction = !contraction_space(group, machine, options).empty();
  const bool is_direct = add({}, is_contraction);
  if (is_contraction && !is_direct) return space;
  // Depthwise convolutions of GPUs compute neighbouring outputs together too.
  const bool has_neighbours =
      is_direct || (machine.is_gpu() && std::ranges::any_of(group.stages, [](const Stage& stage) {
                      return has_fold(stage.output.value);
                    }));
  for (const std::int64_t elements : {64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}) {
    add({.elements = elements}, is_contraction);
    if (has_neighbours)
      for (const std::int64_t neighbours : {1, 2, 3, 4, 6, 8})
        add({.elements = elements, .neighbours = neighbours}, is_contraction);
  }
  return space;
}

}  // namespace tessera::lower
