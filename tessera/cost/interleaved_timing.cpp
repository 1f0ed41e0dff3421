#include "tessera/cost/interleaved_timing.h"

#include <algorithm>
#include <cmath>

#include "tessera/support/rng.h"

namespace tessera::cost {
namespace {

double median(std::vector<double> samples) {
  return percentile(std::move(samples), 0.5);
}

/// Warms up; returns the number of runs per block.
Expected<int> runs_per_block(const TimeRuns& timed, const MeasureOptions& options) {
  TESSERA_TRY(const std::vector<double> first, timed(1));
  TESSERA_TRY(const std::vector<double> second, timed(2));
  const double once = std::max(1e-4, *std::ranges::min_element(second));
  return static_cast<int>(std::clamp(options.block_ms / once, 1.0, 1e5));
}

Expected<Done> go_on(const MeasureOptions& options) {
  if (options.stop != nullptr && *options.stop) {
    return Diagnostic{.id = "stopped", .message = "the measurement was stopped"};
  }
  return Done{};
}

/// Confidence interval by bootstrap over pairs of blocks, with a fixed seed.
void find_interval(InterleavedTiming& timing) {
  constexpr int kDraws = 2000;
  const std::size_t blocks = timing.our_blocks.size();
  Rng rng(1);
  std::vector<double> ratios;
  std::vector<double> ours(blocks), theirs(blocks);
  for (int draw = 0; draw < kDraws; ++draw) {
    for (std::size_t i = 0; i < blocks; ++i) {
      const std::size_t block = rng.below(blocks);
      ours[i] = timing.our_blocks[block];
      theirs[i] = timing.their_blocks[block];
    }
    ratios.push_back(median(ours) / median(theirs));
  }
  timing.ratio = median(timing.our_blocks) / median(timing.their_blocks);
  timing.low = std::min(timing.ratio, percentile(ratios, 0.025));
  timing.high = std::max(timing.ratio, percentile(ratios, 0.975));
}

}  // namespace

double percentile(std::vector<double> samples, double share) {
  if (samples.empty()) return 0;
  std::ranges::sort(samples);
  const double at = share * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return std::lerp(samples[below], samples[above], at - static_cast<double>(below));
}

InterleavedTiming compare_blocks(std::vector<double> our_blocks, std::vector<double> their_blocks) {
  InterleavedTiming timing;
  timing.our_blocks = std::move(our_blocks);
  timing.their_blocks = std::move(their_blocks);
  find_interval(timing);
  return timing;
}

Expected<InterleavedTiming> time_interleaved(const TimeRuns& ours, const TimeRuns& theirs,
                                             const MeasureOptions& options) {
  InterleavedTiming result;
  TESSERA_TRY(const int our_runs, runs_per_block(ours, options));
  TESSERA_TRY(const int their_runs, runs_per_block(theirs, options));
  for (int block = 0; block < options.blocks; ++block) {
    TESSERA_TRY_DONE(go_on(options));
    TESSERA_TRY(const std::vector<double> a, ours(our_runs));
    TESSERA_TRY(const std::vector<double> b, theirs(their_runs));
    result.our_blocks.push_back(median(a));
    result.their_blocks.push_back(median(b));
    result.ours.insert(result.ours.end(), a.begin(), a.end());
    result.theirs.insert(result.theirs.end(), b.begin(), b.end());
  }
  find_interval(result);
  return result;
}

Expected<std::vector<double>> measure(const TimeRuns& ours, const MeasureOptions& options) {
  TESSERA_TRY(const int runs, runs_per_block(ours, options));
  std::vector<double> all;
  for (int block = 0; block < options.blocks; ++block) {
    TESSERA_TRY_DONE(go_on(options));
    TESSERA_TRY(const std::vector<double> times, ours(runs));
    all.insert(all.end(), times.begin(), times.end());
  }
  return all;
}

}  // namespace tessera::cost
