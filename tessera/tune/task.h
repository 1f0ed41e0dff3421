#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/lower/group.h"
#include "tessera/program/draft.h"
#include "tessera/program/lowerings.h"

namespace tessera::tune {

/// Tuning task: a fusion group of a model, which may occur several times, with its schedule space.
struct Task {
  std::string key = {};   // Lowering::key
  std::string what = {};  // operators, for reports
  double uses = 1;        // times that a run of the model computes it
  lower::Group group = {};
  lower::GroupSchedule usual = {};  // default schedule
  std::vector<lower::ScheduleCandidate> space = {};
  std::vector<std::vector<float>> features = {};  // of the space; empty where there are none
  /// Predicted logarithm of the time of each candidate; empty: no model ranks the space.
  std::vector<double> predicted = {};
};

/// Tasks of a planned program: its distinct groups that have more than one schedule, in the order
/// of the program. Spaces keep the candidates with the lowest estimates of each strategy.
std::vector<Task> tasks_of(const program::Draft& draft, const program::Lowerings& lowerings);

/// Position of a schedule in the space of a task.
std::optional<std::size_t> position_of(const Task& task, const lower::GroupSchedule& schedule);

}  // namespace tessera::tune
