#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/cost/schedule_timing.h"

namespace tessera::tune {

/// Result of measuring a candidate schedule.
struct CandidateTiming {
  enum class Status : std::uint8_t {
    Measured,
    Illegal,   // no code can be generated
    Differs,   // the results are not those of the default
    Crashed,   // the worker process died
    TimedOut,  // the worker process was ended
    Stopped,   // the measurement was cancelled
  };
  Status status = Status::Measured;
  cost::ScheduleTiming timing = {};  // relative to the default schedule
};

/// Measures candidate schedules of its tasks, interleaved with the default schedule.
class Meter {
 public:
  virtual ~Meter() = default;

  enum class Effort : std::uint8_t {
    Quick,     // ranks candidates
    Thorough,  // decides whether one replaces the default
  };
  /// `task` is the position of a task, `candidates` are positions in its space.
  virtual std::vector<CandidateTiming> measure(std::size_t task,
                                               std::span<const std::size_t> candidates,
                                               Effort effort) = 0;
};

}  // namespace tessera::tune
