#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "tessera/support/expected.h"

namespace tessera::cost {

/// Percentile of the samples, for a share from 0 to 1; 0 if there are none.
double percentile(std::vector<double> samples, double share);

/// Benchmark callback: times this many runs, in milliseconds each.
using TimeRuns = std::function<Expected<std::vector<double>>(int runs)>;

/// Options of timing in blocks of runs.
struct MeasureOptions {
  int blocks = 15;
  double block_ms = 100;  // approximate length of a block, which has at least one run
  const std::atomic<bool>* stop = nullptr;
};

/// Interleaved timing of two competitors, block by block, so that other load on the computer
/// affects both.
struct InterleavedTiming {
  std::vector<double> ours = {}, theirs = {};              // times of all runs
  std::vector<double> our_blocks = {}, their_blocks = {};  // medians of the blocks
  double ratio = 0;                                        // median of ours over median of theirs
  double low = 0, high = 0;                                // 95 % confidence interval of the ratio
};
/// Ratio and confidence interval of interleaved blocks, by their medians.
InterleavedTiming compare_blocks(std::vector<double> our_blocks, std::vector<double> their_blocks);
Expected<InterleavedTiming> time_interleaved(const TimeRuns& ours, const TimeRuns& theirs,
                                             const MeasureOptions& options);

/// Times one program in blocks.
Expected<std::vector<double>> measure(const TimeRuns& ours, const MeasureOptions& options);

}  // namespace tessera::cost
