#pragma once

#include <vector>

#include "tessera/lower/group.h"
#include "tessera/program/draft.h"
#include "tessera/program/lowerings.h"
#include "tessera/tune/task.h"

namespace tessera::tune {

/// Tuning task of a fusion group of a model, which may occur several times.
struct GroupTask : Task {
  lower::Group group = {};
  std::vector<lower::GroupSchedule> schedules = {};  // of the space

  /// Sets the space; the default schedule is put first where it is not in it.
  void set_space(const std::vector<lower::ScheduleCandidate>& candidates,
                 const lower::GroupSchedule& default_schedule);
};

/// Tasks of a planned program: its distinct groups that have more than one schedule, in the order
/// of the program. Spaces keep the candidates with the lowest estimates of each strategy.
std::vector<GroupTask> tasks_of(const program::Draft& draft, const program::Lowerings& lowerings);

}  // namespace tessera::tune
