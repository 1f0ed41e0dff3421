#include "tessera/cost/schedule_timing.h"

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
    one.seconds = timing.seconds;
    one.samples = timing.samples;
    if (timing.block_medians.size() != timings[0].block_medians.size() ||
        timing.block_medians.empty())
      continue;
    const InterleavedTiming compared =
        compare_blocks(timing.block_medians, timings[0].block_medians);
    one.ratio = compared.ratio;
    one.low = compared.low;
    one.high = compared.high;
  }
  return result;
}

}  // namespace tessera::cost
