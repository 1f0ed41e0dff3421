#include "tessera/lower/group.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "tessera/lower/cost_model.h"
#include "tessera/lower/product_dtype.h"
#include "tessera/lower/target_traits.h"
#include "tessera/tile/passes/for_grid.h"

namespace tessera::lower {
namespace {

/// Programs along the first axis alone where there are too many along the others.
void fit_grid(Lowered& lowered, std::int64_t most_across) {
  tile::Grid& grid = lowered.grid;
  if (grid[1] <= most_across && grid[2] <= most_across) return;
  lowered.kernel = tile::along_one_axis(lowered.kernel, grid);
  grid = {grid[0] * grid[1] * grid[2], 1, 1};
}

using Strategy = Expected<Attempt> (*)(const Group&, const machine::Machine&, const GroupOptions&);

Strategy strategy_of(const GroupSchedule& schedule) {
  constexpr std::array<Strategy, std::variant_size_v<GroupSchedule>> kStrategies = {
      lower_contraction, lower_winograd,    lower_attention,
      lower_rows,        lower_elementwise, lower_contraction};
  return kStrategies[schedule.index()];
}

/// Lowers by the first of the strategies that applies.
Expected<GroupCode> lower_by(std::span<const Strategy> strategies, const Group& group,
                             const machine::Machine& machine, const GroupOptions& options) {
  Diagnostic why =
      options.schedule
          ? illegal_schedule("the strategy of the schedule does not apply to this group")
          : Diagnostic{.id = "lower-unsupported",
                       .message = "no code generation for this group",
                       .note = "interpreter fallback"};
  for (const Strategy strategy : strategies) {
    // One that fails (a tile would be too large) leaves the group to the next.
    Expected<Attempt> attempt = strategy(group, machine, options);
    if (!attempt) {
      why = std::move(attempt).error();
      continue;
    }
    if (!*attempt) continue;
    GroupCode code = **std::move(attempt);
    Expected<Done> accepted = Done{};
    for (Lowered& lowered : code.kernels) {
      fit_grid(lowered, traits_of(machine).most_programs_across);
      lowered.kernel = tile::for_grid(lowered.kernel, lowered.grid);
      if (accepted && options.accept) accepted = options.accept(lowered.kernel);
    }
    if (accepted) return code;
    why = std::move(accepted).error();
  }
  return why;
}

}  // namespace

GroupOptions effective_options(const Group& group, const machine::Machine& machine,
                               GroupOptions options) {
  if (options.exact || options.contraction_dtype != DType::F32) return options;
  const std::vector<DType> fast = machine::fast_product_types(machine);
  const auto dtype = product_dtype(group);
  if (dtype && std::ranges::find(fast, *dtype) != fast.end()) {
    options.contraction_dtype = *dtype;
    options.exact_operands = true;
  }
  return options;
}

std::vector<ScheduleCandidate> schedule_space(const Group& group, const machine::Machine& machine,
                                              const GroupOptions& given) {
  GroupOptions options = effective_options(group, machine, given);
  options.schedule.reset();
  std::vector<ScheduleCandidate> all;
  if (group.box || std::ranges::any_of(group.stages, [](const tile::Stage& stage) {
        return stage.output.forward.has_value();
      }))
    return all;
  using Space = ScheduleCandidates (*)(const Group&, const machine::Machine&, const GroupOptions&);
  constexpr std::array<Space, 5> kOnCpu = {attention_space, winograd_space, contraction_space,
                                           rows_space, loops_space};
  constexpr std::array<Space, 4> kOnGpu = {attention_space, contraction_space, rows_space,
                                           loops_space};
  for (const Space space :
       machine.is_gpu() ? std::span<const Space>(kOnGpu) : std::span<const Space>(kOnCpu))
    std::ranges::move(space(group, machine, options), std::back_inserter(all));
  return all;
}

Expected<GroupCode> lower_group(const Group& group, const machine::Machine& machine,
                                const GroupOptions& given) {
  GroupOptions options = effective_options(group, machine, given);
  if (group.box) {
    options.schedule.reset();
    const std::array strategies = {Strategy(lower_box)};
    return lower_by(strategies, group, machine, options);
  }
  if (options.schedule) {
    const std::array strategies = {strategy_of(*options.schedule)};
    auto code = lower_by(strategies, group, machine, options);
    // Tiles that a GPU has no room for have diagnostics of their own.
    if (!code && code.error().id.starts_with("ptx-")) return illegal_schedule(code.error().message);
    return code;
  }
  options.schedule = learned_schedule(group, machine, options);
  if (options.schedule) {
    const std::array strategies = {strategy_of(*options.schedule)};
    if (auto code = lower_by(strategies, group, machine, options)) return code;
    options.schedule.reset();
  }
  // The special ones first: what two of them can do, the earlier does faster.
  constexpr std::array<Strategy, 8> kStrategies = {
      lower_scatter, lower_attention, lower_winograd,        lower_contraction,
      lower_copy,    lower_rows,      lower_split_reduction, lower_elementwise};
  return lower_by(kStrategies, group, machine, options);
}

}  // namespace tessera::lower
