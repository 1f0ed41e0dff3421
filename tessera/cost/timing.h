#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/cost/unit.h"
#include "tessera/program/assemble.h"

namespace tessera::cost {

struct Timing {
  double seconds = 0;        // the least median of a block of runs
  double best = 0;           // the least of all
  std::int64_t samples = 0;  // 0: it cannot be timed alone
};

struct TimingOptions {
  program::CompileOptions code = {};
  double seconds_per_unit = 0.02;
  double expected_seconds = 0;  // of all units once, about
  /// Weights are read as if so many bytes of others had been read since.
  std::int64_t weight_bytes = 0;
};

/// Compiles units of a draft and times them on this computer as they run in a program: all in
/// turns, what they read just written, weights that the caches may have lost since.
Expected<std::vector<Timing>> time_units(const program::Draft& draft, std::span<const Unit> units,
                                         const TimingOptions& options);

}  // namespace tessera::cost
