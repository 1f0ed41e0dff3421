#pragma once

#include <string>
#include <vector>

#include "tessera/program/lowerings.h"

namespace tessera {

/// Schedule of a lowered group, what it was chosen by, and the best ones of those that were not.
struct ScheduleChoice {
  struct Alternative {
    std::string schedule = {};
    double cost = 0;  // predicted time over that of the chosen one; 0: not predicted
  };
  std::string schedule = {};  // as `--schedule` reads it
  std::string by = {};        // what chose it, in words
  std::size_t candidates = 0;
  std::vector<Alternative> alternatives = {};  // the best of each strategy, then the next best
};

/// Empty where the strategy of the group has no schedules.
ScheduleChoice schedule_choice(const program::Lowering& lowering,
                               const program::Lowerings& lowerings);

}  // namespace tessera
