#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tessera/expr/walk.h"
#include "tessera/lower/group.h"
#include "tessera/lower/range.h"
#include "tessera/lower/split_fold.h"
#include "tessera/lower/target_traits.h"

namespace tessera::lower {

using tile::Loop;
using tile::Stage;

namespace {

/// Split that gives every core of the GPU two programs, as far as each still has some hundred
/// elements to reduce; none where there are enough programs without, or too little to reduce.
std::optional<FoldSplit> choose_split(const Stage& stage, const machine::Machine& machine) {
  constexpr std::int64_t kLongEnough = 512, kLeastLength = 64, kLeastParts = 4;
  constexpr std::int64_t kOutputs = 16;  // of a program that reduces many elements of each
  const auto fold = main_fold(stage);
  if (fold == nullptr || !fold->simple() || fold->lift[0].sort() != Sort::Value || is_wide(stage))
    return std::nullopt;
  const auto schedule = tile::Schedule::of({stage});
  if (!schedule) return std::nullopt;
  std::int64_t outputs = 1, reduced = 1;
  for (const Loop& loop : schedule->nest(stage.name()).loops)
    (loop.reduces ? reduced : outputs) *= loop.extent;
  const std::int64_t programs = std::max<std::int64_t>(outputs / kOutputs, 1);
  if (reduced < kLongEnough || outputs == 0 || programs >= machine.cores) return std::nullopt;
  const std::int64_t most = std::min(2 * machine.cores / programs, reduced / kLeastLength);
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
  if (!traits_of(machine).has_thread_blocks || options.exact || options.schedule ||
      group.stages.size() != 1 || group.stages[0].output.forward)
    return Attempt{};
  const auto split = choose_split(group.stages[0], machine);
  if (!split) return Attempt{};
  const tile::Stages stages = split_fold(group.stages[0], *split);
  TESSERA_TRY(
      Attempt made,
      lower_elementwise({.stages = stages, .results = group.results, .weights = group.weights},
                        machine, options));
  if (made) made->strategy += fmt::format(", reduction in {} parts", split->parts);
  return made;
}

}  // namespace tessera::lower
