#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/cost/store.h"
#include "tessera/program/schedule_book.h"
#include "tessera/tune/meter.h"
#include "tessera/tune/task.h"

namespace tessera::tune {

/// Progress of tuning.
struct Progress {
  double seconds = 0, budget = 0;
  std::size_t tasks = 0, trials = 0;  // trials: candidates that were measured so far
  double default_seconds = 0;         // of all tasks with their default schedules
  double best_seconds = 0;            // with the best schedules so far
};

/// Options of tuning.
struct TuneOptions {
  double seconds = 60;          // time budget; one batch is measured in any case
  std::size_t most_trials = 0;  // budget of candidates in place of time; 0: none
  std::uint64_t seed = 1;
  std::size_t batch = 8;  // candidates that are measured together
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const Progress&)> progress = {};
};

/// Candidate that was measured.
struct Trial {
  std::size_t candidate = 0;  // in the space of the task
  double at = 0;              // seconds since the start
  double predicted = 0;       // ratio to the default before it was measured
  double ratio = 0;           // measured; 0: it could not be run
};

/// Result for one task.
struct TaskResult {
  double default_seconds = 0;
  std::size_t known = 0;  // candidates that the store had before
  std::size_t failed = 0;
  std::vector<Trial> trials = {};
  /// Candidate that is faster than the default beyond the confidence interval, and its ratio; none:
  /// the default is kept.
  std::optional<std::size_t> chosen = {};
  double ratio = 1, low = 1, high = 1;
};

struct TuneResult {
  std::vector<TaskResult> tasks = {};  // in the order of the given ones
  double seconds = 0;
  enum class End : std::uint8_t { Budget, Exhausted, Stopped };
  End end = End::Budget;
};

std::string_view to_string(TuneResult::End end);

/// Tunes the tasks of a meter: measures candidate schedules within the budget, which tasks share by
/// their expected gain, and stores every measurement. Candidates that the store knows are not
/// measured again. A schedule is chosen only where it is faster than the default beyond the 95 %
/// confidence interval.
Expected<TuneResult> tune(const std::vector<const Task*>& tasks, Meter& meter, cost::Store& store,
                          const std::string& target, const TuneOptions& options);

/// Schedules that the store has chosen for a target.
Expected<program::ScheduleBook> tuned_schedules(const cost::Store& store,
                                                const std::string& target);

}  // namespace tessera::tune
