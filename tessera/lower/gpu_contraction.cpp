#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tessera/lower/block_form.h"
#include "tessera/lower/gpu_cost.h"
#include "tessera/lower/gpu_tiles.h"
#include "tessera/lower/split_fold.h"

namespace tessera::lower {
namespace {

/// Tiling that the options ask for, or else the default.
Expected<ContractionTiling> block_tiling(const Contraction& c, const GroupOptions& options,
                                         const machine::Machine& machine) {
  ContractionTiling tiling;
  if (options.schedule) {
    TESSERA_TRY(
        tiling.tiles,
        block_tiles_of(c, std::get<BlockContractionSchedule>(*options.schedule), options, machine));
  } else {
    tiling.tiles = gpu_tiles(c, options, machine);
  }
  tiling.panels = {options.contraction_dtype, tiling.tiles.columns, 1};
  return tiling;
}

/// Group of the parts of a split sum, and the stage that adds them up.
struct SplitGroup {
  Group parts;
  tile::Stage whole;
};

SplitGroup split_group(const Contraction& whole, const SplitK& cut, const Group& group) {
  const std::int64_t extent = std::ranges::find(whole.sums, cut.axis, &IndexAxis::name)->extent;
  tile::Stages stages = split_fold(*whole.stage, {.fold = whole.fold,
                                                  .axis = cut.axis,
                                                  .parts = cut.parts,
                                                  .length = cut.length,
                                                  .goes_past = cut.length * cut.parts > extent,
                                                  .unrolled = true});
  return {.parts = {.stages = {stages[0]}, .results = {stages[0].name()}, .weights = group.weights},
          .whole = std::move(stages[1])};
}

/// The sum in parts by some programs, and their sum by others.
Expected<Attempt> lower_in_parts(const BlockForm& form, const SplitK& cut,
                                 const machine::Machine& machine) {
  const GroupOptions& options = form.options();
  const SplitGroup split = split_group(*form.contraction(), cut, form.group());
  const auto contraction = contraction_of(split.parts, rounding_of(options));
  if (!contraction) return Attempt{};
  TESSERA_TRY(ContractionTiling tiling, block_tiling(*contraction, options, machine));
  TESSERA_TRY(GroupCode code, lower_tiled(*contraction, std::move(tiling), machine, options));
  GroupOptions rest_options = options;
  rest_options.schedule.reset();
  TESSERA_TRY(Attempt rest, lower_elementwise({.stages = {split.whole},
                                               .results = form.group().results,
                                               .weights = form.group().weights},
                                              machine, rest_options));
  if (!rest) return Attempt{};
  std::ranges::move(rest->kernels, std::back_inserter(code.kernels));
  std::ranges::move(rest->packings, std::back_inserter(code.packings));
  TESSERA_TRY(const std::vector<Operand> tensors, tensors_of(split.parts.stages));
  code.temporaries.push_back(tensors.back());
  code.strategy += fmt::format(", split-K {}", cut.parts);
  std::get<BlockContractionSchedule>(*code.schedule).split = cut.parts;
  return Attempt(std::move(code));
}

}  // namespace

std::optional<GroupSchedule> default_block_schedule(const Group& group,
                                                    const machine::Machine& machine,
                                                    const GroupOptions& given) {
  const BlockForm form(group, given);
  if (form.contraction() == nullptr) return std::nullopt;
  const Contraction& c = *form.contraction();
  const SplitK cut = given.exact ? SplitK{} : choose_split_k(c, form.options(), machine);
  if (cut.parts == 1) return schedule_of(gpu_tiles(c, form.options(), machine));
  const SplitGroup split = split_group(c, cut, form.group());
  const auto part = contraction_of(split.parts, rounding_of(form.options()));
  if (!part) return std::nullopt;
  BlockContractionSchedule schedule = schedule_of(gpu_tiles(*part, form.options(), machine));
  schedule.split = cut.parts;
  return schedule;
}

Expected<Attempt> lower_by_blocks(const Group& group, const machine::Machine& machine,
                                  const GroupOptions& given) {
  const BlockForm form(group, given);
  if (form.contraction() == nullptr) return Attempt{};
  const Contraction& c = *form.contraction();
  if (given.schedule) {
    const std::int64_t parts = std::get<BlockContractionSchedule>(*given.schedule).split;
    if (parts != 1) {
      if (given.exact || std::ranges::find(kSplitKParts, parts) == kSplitKParts.end())
        return illegal_schedule(fmt::format("the reduction is not split into {} parts", parts));
      const std::optional<SplitK> cut = split_k(c, form.options(), parts);
      if (!cut)
        return illegal_schedule(fmt::format("no axis of the reduction has {} equal parts", parts));
      TESSERA_TRY(Attempt split, lower_in_parts(form, *cut, machine));
      if (split) return split;
      return illegal_schedule("the parts of the reduction are no contraction");
    }
  } else if (!given.exact) {
    if (const SplitK cut = choose_split_k(c, form.options(), machine); cut.parts > 1) {
      TESSERA_TRY(Attempt split, lower_in_parts(form, cut, machine));
      if (split) return split;
    }
  }
  TESSERA_TRY(ContractionTiling tiling, block_tiling(c, form.options(), machine));
  TESSERA_TRY(GroupCode code, lower_tiled(c, std::move(tiling), machine, form.options()));
  return Attempt(std::move(code));
}

ScheduleCandidates block_space(const Group& group, const machine::Machine& machine,
                               const GroupOptions& options) {
  const BlockForm form(group, options);
  if (form.contraction() == nullptr) return {};
  const Contraction& c = *form.contraction();
  // Other tiles of tensor cores add up in another order.
  const GpuContractionCost cost(c, form.options(), machine);
  if (options.exact && cost.uses_tensor_cores()) return {};
  ScheduleCandidates space = block_candidates(c, form.options(), machine);
  for (const std::int64_t parts : kSplitKParts) {
    const auto cut = options.exact ? std::nullopt : split_k(c, form.options(), parts);
    if (!cut) continue;
    const SplitGroup split = split_group(c, *cut, form.group());
    const auto part = contraction_of(split.parts, rounding_of(form.options()));
    if (!part) continue;
    for (ScheduleCandidate& one : block_candidates(*part, form.options(), machine)) {
      std::get<BlockContractionSchedule>(one.schedule).split = parts;
      space.push_back({std::move(one.schedule), one.cycles + cost.of_parts(parts)});
    }
  }
  std::ranges::stable_sort(space, {}, &ScheduleCandidate::cycles);
  return space;
}

}  // namespace tessera::lower
