#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "tessera/support/expected.h"

namespace tessera::cost {

/// The value below which this share (0 to 1) of the samples lies; 0 of none.
double percentile(std::vector<double> samples, double share);

/// Gives milliseconds of each of so many runs.
using Timed = std::function<Expected<std::vector<double>>(int runs)>;

struct MeasureOptions {
  int blocks = 15;
  double block_ms = 100;  // about; at least one run
  const std::atomic<bool>* stop = nullptr;
};

/// Two competitors timed in turns, block by block, so that what else the computer does hits both.
struct Contest {
  std::vector<double> ours = {}, theirs = {};              // of all runs
  std::vector<double> our_blocks = {}, their_blocks = {};  // medians
  double ratio = 0;                                        // median of ours over median of theirs
  double low = 0, high = 0;                                // a 95 % interval of it
};
Expected<Contest> contest(const Timed& ours, const Timed& theirs, const MeasureOptions& options);

/// The same without a competitor.
Expected<std::vector<double>> measure(const Timed& ours, const MeasureOptions& options);

}  // namespace tessera::cost
