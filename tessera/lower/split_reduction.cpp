#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tessera/expr/walk.h"
#include "tessera/lower/axes.h"
#include "tessera/lower/group.h"
#include "tessera/lower/lower.h"
#include "tessera/lower/range.h"
#include "tessera/lower/split_fold.h"
#include "tessera/lower/target_traits.h"

namespace tessera::lower {

using tile::Loop;
using tile::Stage;

namespace {

/// Whether the innermost loop of the output runs along rows of memory, across the reduction, and is
/// at least `columns` long.
bool has_columns(const Stage& stage, const tile::Nest& nest, std::int64_t columns) {
  const Loop* last = nullptr;
  for (const Loop& loop : nest.loops)
    if (!loop.reduces && loop.extent > 1) last = &loop;
  bool along = last != nullptr && last->extent >= columns;
  for_each_read(stage.output.value, [&](const node::Read& read) {
    if (read.at.empty() || !along) return;
    const auto loops = tile::loops_of(nest, read.at.back());
    along = loops.empty() || std::ranges::find(loops, last->name) != loops.end();
  });
  return along;
}

/// Split that keeps the memory of the GPU busy, as far as each program still has some hundred
/// elements to reduce; none where there are enough programs without, or too little to reduce.
std::optional<FoldSplit> choose_split(const Stage& stage, const machine::Machine& machine) {
  constexpr std::int64_t kLongEnough = 512, kLeastLength = 64, kLeastParts = 4;
  constexpr std::int64_t kOutputs = 16;  // of a program that reduces many elements of each
  // A program, a warp, waits for 1 to 4 KB at a time. By Little's law 4.8 TB/s at a latency of 0.7
  // us are 3.4 MB, 26 KB for each of the 132 cores of an H200.
  constexpr std::int64_t kProgramsPerCore = 16;
  constexpr std::int64_t kMostParts = 512;  // which few programs add up
  const auto fold = main_fold(stage);
  if (fold == nullptr || !fold->simple() || fold->lift[0].sort() != Sort::Value || is_wide(stage))
    return std::nullopt;
  const auto schedule = tile::Schedule::of({stage});
  if (!schedule) return std::nullopt;
  std::int64_t outputs = 1, reduced = 1;
  for (const Loop& loop : schedule->nest(stage.name()).loops)
    (loop.reduces ? reduced : outputs) *= loop.extent;
  // Programs of whole lines of memory wait for more bytes at a time.
  const bool is_wide_tile = has_columns(stage, schedule->nest(stage.name()), kColumnsOfAProgram);
  const std::int64_t columns = is_wide_tile ? kColumnsOfAProgram : kOutputs;
  const std::int64_t programs = std::max<std::int64_t>(outputs / columns, 1);
  if (reduced < kLongEnough || outputs == 0 || programs >= machine.cores) return std::nullopt;
  const std::int64_t all = kProgramsPerCore * kOutputs / columns * machine.cores;
  const std::int64_t most = std::min({all / programs, reduced / kLeastLength, kMostParts});
  FoldSplit best{.fold = fold};
  for (const Bound& bound : fold->bounds) {
    const auto extent = bound.extent.integer();
    if (!extent) return std::nullopt;  // it depends on the output's position
    const std::int64_t parts = largest_divisor(*extent, most);
    if (parts > best.parts) {
      best.axis = bound.axis;
      best.parts = parts;
      best.length = *extent / parts;
    }
  }
  return best.parts >= kLeastParts ? std::optional(best) : std::nullopt;
}

}  // namespace

// Few outputs of many elements each: programs reduce parts of them, others combine the parts.
Expected<Attempt> lower_split_reduction(const Group& group, const machine::Machine& machine,
                                        const GroupOptions& options) {
  const auto is_forward = [](const Stage& stage) { return stage.output.forward.has_value(); };
  if (!traits_of(machine).has_thread_blocks || options.exact || options.schedule ||
      std::ranges::any_of(group.stages, is_forward))
    return Attempt{};
  tile::Stages stages;
  std::string parts;
  // Fewer and longer axes have more divisors; weights are packed as they lie.
  for (const Stage& stage : group.weights.empty() ? collapsed(group.stages) : group.stages) {
    const auto split = choose_split(stage, machine);
    if (!split) {
      stages.push_back(stage);
      continue;
    }
    for (Stage& part : split_fold(stage, *split)) stages.push_back(std::move(part));
    parts += fmt::format("{}{}", parts.empty() ? "" : " and ", split->parts);
  }
  if (parts.empty()) return Attempt{};
  TESSERA_TRY(
      Attempt made,
      lower_elementwise({.stages = stages, .results = group.results, .weights = group.weights},
                        machine, options));
  if (made) made->strategy += fmt::format(", reduction in {} parts", parts);
  return made;
}

}  // namespace tessera::lower
