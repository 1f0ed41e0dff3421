#include "tessera/tune/tune.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>

#include "tessera/support/hash.h"
#include "tessera/support/stopwatch.h"
#include "tessera/tune/explorer.h"

namespace tessera::tune {
namespace {

using Status = CandidateTiming::Status;

/// Relative gain that a first batch is expected to find, and how it changes after a batch without
/// any gain.
constexpr double kFirstGain = 0.15, kDecay = 0.6;
/// Gain over what was confirmed before that is worth a thorough measurement.
constexpr double kWorthConfirming = 0.97;
constexpr std::size_t kConfirmed = 2;  // candidates of a thorough measurement

/// Logarithms of the analytic estimates, relative to the least of their strategy.
std::vector<double> analytic(const Task& task) {
  std::map<double, double> least;  // by strategy
  for (const Candidate& one : task.space) {
    if (!(one.cycles > 0)) continue;
    double& cycles = least.try_emplace(one.point[0], one.cycles).first->second;
    cycles = std::min(cycles, one.cycles);
  }
  std::vector<double> predicted;
  for (const Candidate& one : task.space)
    predicted.push_back(one.cycles > 0 ? std::log(one.cycles / least[one.point[0]]) : 0.0);
  return predicted;
}

/// Tuning state of one task.
struct TaskState {
  const Task* task = nullptr;
  std::size_t position = 0;  // of the task
  Explorer explorer;
  TaskResult result = {};
  double expected_gain = kFirstGain;
  double confirmed = 1;  // ratio of the chosen schedule, or of those that were not confirmed
  bool is_exhausted = false;

  double seconds() const { return task->uses * result.default_seconds; }
  double priority() const { return is_exhausted ? 0 : seconds() * result.ratio * expected_gain; }
};

class Tuner {
 public:
  Tuner(const std::vector<const Task*>& tasks, Meter& meter, cost::Store& store, std::string target,
        const TuneOptions& options)
      : meter_(meter), store_(store), target_(std::move(target)), options_(options) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const Task& task = *tasks[i];
      std::vector<double> predicted = task.predicted.empty() ? analytic(task) : task.predicted;
      Hasher seed;
      seed.add(options.seed);
      seed.add_text(task.key);
      states_.push_back({&task, i, Explorer(task, std::move(predicted), seed.value())});
    }
  }

  Expected<TuneResult> run() {
    TESSERA_TRY_DONE(resume());
    TESSERA_TRY_DONE(time_defaults());
    TuneResult result;
    while (true) {
      const auto next = std::ranges::max_element(states_, {}, &TaskState::priority);
      result.end = is_stopped()                                       ? TuneResult::End::Stopped
                   : next == states_.end() || !(next->priority() > 0) ? TuneResult::End::Exhausted
                                                                      : TuneResult::End::Budget;
      if (result.end != TuneResult::End::Budget || is_spent()) break;
      TESSERA_TRY_DONE(advance(*next));
      report();
    }
    for (TaskState& state : states_) result.tasks.push_back(std::move(state.result));
    result.seconds = watch_.seconds();
    return result;
  }

 private:
  bool is_stopped() const { return options_.stop != nullptr && *options_.stop; }
  bool is_spent() const {
    if (options_.most_trials > 0) return trials_ >= options_.most_trials;
    // One batch in any case: on a slow machine the defaults alone may take longer than the budget,
    // and would again in the next run.
    return trials_ > 0 && watch_.seconds() >= options_.seconds;
  }

  /// Takes over what the store knows.
  Expected<Done> resume() {
    TESSERA_TRY(const std::vector<cost::ScheduleMeasurement> known, store_.schedules(target_));
    for (const cost::ScheduleMeasurement& one : known)
      for (TaskState& state : states_) {
        if (state.task->key != one.key) continue;
        const auto position = position_of(*state.task, one.schedule);
        if (!position) continue;
        state.explorer.record(*position, one.ratio > 0 ? std::optional(one.ratio) : std::nullopt);
        ++state.result.known;
        if (!one.chosen) continue;
        state.result.chosen = *position;
        state.result.ratio = state.confirmed = one.ratio;
        state.result.low = one.low;
        state.result.high = one.high;
      }
    return Done{};
  }

  Expected<Done> time_defaults() {
    for (TaskState& state : states_) {
      if (is_stopped()) return Done{};
      const std::size_t usual = state.task->usual;
      const auto timing =
          meter_.measure(state.position, std::span(&usual, 1), Meter::Effort::Quick)[0];
      state.result.default_seconds = timing.timing.seconds;
      state.is_exhausted = timing.status != Status::Measured;
      if (state.is_exhausted) continue;
      state.explorer.record(usual, 1.0);
      report();
    }
    return Done{};
  }

  /// One batch of a task; a thorough measurement if it seems to have a gain.
  Expected<Done> advance(TaskState& state) {
    const std::vector<std::size_t> batch = state.explorer.next_batch(options_.batch);
    if (batch.empty()) {
      state.is_exhausted = true;
      return Done{};
    }
    const double before = state.explorer.best() ? state.explorer.best()->second : 1;
    TESSERA_TRY_DONE(measure(state, batch, Meter::Effort::Quick));
    const double after = state.explorer.best() ? state.explorer.best()->second : 1;
    const double gain = 1 - after / before;
    state.expected_gain = gain > 0.01 ? std::max(gain / 2, state.expected_gain * kDecay)
                                      : state.expected_gain * kDecay;
    if (after < kWorthConfirming * state.confirmed && !is_stopped()) return confirm(state, after);
    return Done{};
  }

  /// Measures the best candidates thoroughly, and chooses the fastest that is surely faster than
  /// the default.
  Expected<Done> confirm(TaskState& state, double quick) {
    std::vector<std::size_t> best = state.explorer.fastest(kConfirmed);
    std::erase(best, state.task->usual);  // what the others are compared with
    if (const auto now = state.result.chosen; now && std::ranges::find(best, *now) == best.end())
      best.push_back(*now);
    state.confirmed = quick;
    const auto measured = meter_.measure(state.position, best, Meter::Effort::Thorough);
    for (std::size_t i = 0; i < best.size(); ++i)
      if (measured[i].status == Status::Measured)
        state.explorer.record(best[i], measured[i].timing.ratio);
    TESSERA_TRY_DONE(put(state, best, measured));
    std::optional<std::size_t> fastest;
    for (std::size_t i = 0; i < best.size(); ++i)
      if (measured[i].status == Status::Measured && measured[i].timing.high < 1 &&
          (!fastest || measured[i].timing.ratio < measured[*fastest].timing.ratio))
        fastest = i;
    if (!fastest) return reject(state, best, measured);
    const cost::ScheduleTiming& timing = measured[*fastest].timing;
    state.result.chosen = best[*fastest];
    state.result.ratio = timing.ratio;
    state.result.low = timing.low;
    state.result.high = timing.high;
    return store_.choose(target_, state.task->key, state.task->space[best[*fastest]].schedule);
  }

  /// Gives up the chosen schedule if a thorough measurement does not confirm it any more.
  Expected<Done> reject(TaskState& state, const std::vector<std::size_t>& candidates,
                        const std::vector<CandidateTiming>& measured) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (state.result.chosen != candidates[i] || measured[i].status != Status::Measured) continue;
      state.result.chosen.reset();
      state.result.ratio = state.result.low = state.result.high = 1;
      return store_.choose(target_, state.task->key, "");
    }
    return Done{};
  }

  Expected<Done> measure(TaskState& state, const std::vector<std::size_t>& batch,
                         Meter::Effort effort) {
    std::vector<double> predicted;
    for (const std::size_t i : batch) predicted.push_back(std::exp(state.explorer.predicted(i)));
    const std::vector<CandidateTiming> measured = meter_.measure(state.position, batch, effort);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (measured[i].status == Status::Stopped) continue;
      const bool is_measured = measured[i].status == Status::Measured;
      const double ratio = is_measured ? measured[i].timing.ratio : 0;
      state.explorer.record(batch[i], is_measured ? std::optional(ratio) : std::nullopt);
      state.result.trials.push_back({batch[i], watch_.seconds(), predicted[i], ratio});
      if (!is_measured) ++state.result.failed;
      ++trials_;
    }
    return put(state, batch, measured);
  }

  Expected<Done> put(const TaskState& state, const std::vector<std::size_t>& candidates,
                     const std::vector<CandidateTiming>& measured) {
    std::vector<cost::ScheduleMeasurement> rows;
    const Task& task = *state.task;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (measured[i].status == Status::Stopped) continue;
      const bool is_measured = measured[i].status == Status::Measured;
      const cost::ScheduleTiming timing = is_measured ? measured[i].timing : cost::ScheduleTiming{};
      rows.push_back({.key = task.key,
                      .schedule = task.space[candidates[i]].schedule,
                      .seconds = is_measured ? timing.seconds : 0,
                      .ratio = is_measured ? timing.ratio : 0,
                      .low = is_measured ? timing.low : 0,
                      .high = is_measured ? timing.high : 0,
                      .samples = timing.samples,
                      .chosen = state.result.chosen == candidates[i],
                      .when = std::time(nullptr)});
      if (!task.features.empty())
        rows.back().features = fmt::format("{}", fmt::join(task.features[candidates[i]], " "));
    }
    return store_.put(target_, rows);
  }

  void report() const {
    if (!options_.progress) return;
    Progress now{.seconds = watch_.seconds(),
                 .budget = options_.seconds,
                 .tasks = states_.size(),
                 .trials = trials_};
    for (const TaskState& state : states_) {
      now.default_seconds += state.seconds();
      now.best_seconds += state.seconds() * state.result.ratio;
    }
    options_.progress(now);
  }

  Meter& meter_;
  cost::Store& store_;
  std::string target_;
  const TuneOptions& options_;
  std::vector<TaskState> states_;
  std::size_t trials_ = 0;
  Stopwatch watch_;
};

}  // namespace

Expected<TuneResult> tune(const std::vector<const Task*>& tasks, Meter& meter, cost::Store& store,
                          const std::string& target, const TuneOptions& options) {
  return Tuner(tasks, meter, store, target, options).run();
}

std::string_view to_string(TuneResult::End end) {
  switch (end) {
    case TuneResult::End::Budget: return "budget";
    case TuneResult::End::Exhausted: return "exhausted";
    case TuneResult::End::Stopped: return "stopped";
  }
  return "";
}

Expected<program::ScheduleBook> tuned_schedules(const cost::Store& store,
                                                const std::string& target) {
  program::ScheduleBook book;
  TESSERA_TRY(const std::vector<cost::ScheduleMeasurement> chosen, store.schedules(target, true));
  for (const cost::ScheduleMeasurement& one : chosen)
    if (auto schedule = lower::parse_group_schedule(one.schedule))
      book.entries.insert_or_assign(one.key,
                                    program::ScheduleBook::Entry{*std::move(schedule), ""});
  return book;
}

}  // namespace tessera::tune
