#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "tessera/cost/unit.h"
#include "tessera/program/assemble.h"

namespace tessera::cost {

/// Timing of a unit on this computer.
struct Timing {
  double seconds = 0;        // least block median
  double best = 0;           // least of all runs
  std::int64_t samples = 0;  // number of runs; 0: it cannot be timed alone
  std::vector<double> block_minima = {};
};

/// Options of time_units.
struct TimingOptions {
  program::CompileOptions code = {};
  double seconds_per_unit = 0.02;
  double expected_seconds = 0;  // approximate time of one run of all units
  /// Bytes of weights in the whole model: between two runs of a unit, about as many bytes of other
  /// weights are read, as in a real program.
  std::int64_t weight_bytes = 0;
  int least_blocks = 3;
  /// File that is locked while a GPU is used, so that several processes may compile at the same
  /// time; empty: none.
  std::filesystem::path gpu_lock = {};
};

/// Compiles units of a draft program and times them as they run in it: interleaved, inputs freshly
/// written, weights possibly evicted from the caches.
Expected<std::vector<Timing>> time_units(const program::Draft& draft, std::span<const Unit> units,
                                         const TimingOptions& options);

}  // namespace tessera::cost
