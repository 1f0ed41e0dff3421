#include "tessera/cost/schedule_timing.h"

#include <algorithm>

#include "tessera/cost/interleaved_timing.h"
#include "tessera/program/group_draft.h"

namespace tessera::cost {

Expected<std::vector<ScheduleTiming>> time_lowerings(
    const lower::Group& group, std::span<const std::shared_ptr<const lower::GroupCode>> codes,
    const TimingOptions& options) {
  TESSERA_TRY(const program::GroupDraft made, program::group_draft(group, codes));
  std::vector<Unit> units;
  for (const program::GroupDraft::Range& range : made.steps)
    units.push_back({.first = range.first, .count = range.count});
  TESSERA_TRY(const std::vector<Timing> timings, time_units(made.draft, units, options));
  std::vector<ScheduleTiming> result;
  for (const Timing& timing : timings) {
    ScheduleTiming& one = result.emplace_back();
    one.seconds = timing.best;
    one.samples = timing.samples;
    if (timing.block_minima.size() != timings[0].block_minima.size() ||
        timing.block_minima.empty() || !(timings[0].best > 0))
      continue;
    const InterleavedTiming compared = compare_blocks(timing.block_minima, timings[0].block_minima);
    one.ratio = timing.best / timings[0].best;
    one.low = std::min(compared.low, one.ratio);
    one.high = std::max(compared.high, one.ratio);
  }
  return result;
}

}  // namespace tessera::cost
