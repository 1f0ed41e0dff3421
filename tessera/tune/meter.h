#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/cost/schedule_timing.h"
#include "tessera/tune/task.h"

namespace tessera::tune {

/// Result of measuring a candidate schedule.
struct CandidateTiming {
  enum class Status : std::uint8_t {
    Measured,
    Illegal,   // no code can be generated
    Crashed,   // the worker process died
    TimedOut,  // the worker process was ended
    Stopped,   // the measurement was cancelled
  };
  Status status = Status::Measured;
  cost::ScheduleTiming timing = {};  // relative to the default schedule
};

/// Measures candidate schedules of a task, interleaved with the default schedule.
class Meter {
 public:
  virtual ~Meter() = default;

  enum class Effort : std::uint8_t {
    Quick,     // ranks candidates
    Thorough,  // decides whether one replaces the default
  };
  virtual std::vector<CandidateTiming> measure(const Task& task,
                                               std::span<const lower::GroupSchedule> schedules,
                                               Effort effort) = 0;
};

}  // namespace tessera::tune
