#pragma once

#include <span>
#include <vector>

#include "tessera/cost/timing.h"
#include "tessera/lower/group.h"

namespace tessera::cost {

/// Timing of a lowering of a group, relative to the first one of those that were timed together.
/// Times are minima, which other load on the computer affects least.
struct ScheduleTiming {
  double seconds = 0;        // least of all runs
  double ratio = 1;          // over the first: below 1, it is faster
  double low = 1, high = 1;  // 95 % confidence interval of the ratio, by the minima of blocks
  std::int64_t samples = 0;
  bool differs = false;  // the results are not those of the first, beyond rounding; on a GPU
};

/// Timings of competitors relative to the first one, from interleaved blocks of each.
std::vector<ScheduleTiming> compared_timings(std::span<const Timing> timings);

/// Compiles several lowerings of one group and times them, interleaved, as they run in a program:
/// inputs freshly written, weights possibly evicted from the caches. On a GPU, each is a CUDA graph
/// of repetitions, and results are compared with those of the first.
Expected<std::vector<ScheduleTiming>> time_lowerings(
    const lower::Group& group, std::span<const std::shared_ptr<const lower::GroupCode>> codes,
    const TimingOptions& options);

}  // namespace tessera::cost
