#include "tessera/tune/task.h"

#include <algorithm>
#include <array>
#include <map>
#include <numbers>
#include <set>

#include "tessera/cost/unit.h"
#include "tessera/lower/cost_model.h"
#include "tessera/lower/schedule_features.h"

namespace tessera::tune {
namespace {

/// Candidates of one strategy that a space keeps.
constexpr std::size_t kMostOfStrategy = 1500;

/// Drops the candidates of a strategy with the highest estimates; the default stays.
void trim(Task& task) {
  std::array<std::size_t, std::variant_size_v<lower::GroupSchedule>> kept = {};
  std::erase_if(task.space, [&](const lower::ScheduleCandidate& one) {
    return ++kept[one.schedule.index()] > kMostOfStrategy && one.schedule != task.usual;
  });
}

void add_features(Task& task, const program::Lowerings& lowerings) {
  const auto features =
      lower::ScheduleFeatures::of(task.group, lowerings.machine(), lowerings.options());
  if (!features) return;
  for (const lower::ScheduleCandidate& one : task.space)
    task.features.push_back(features->operator()(one.schedule).value_or(std::vector<float>{}));
}

/// Logarithms of predicted times; a candidate without a prediction has that of the default.
void add_predictions(Task& task, const program::Lowerings& lowerings) {
  const auto times =
      lower::predicted_times(task.group, lowerings.machine(), lowerings.options(), task.space);
  const auto usual = position_of(task, task.usual);
  if (times.empty() || !usual || !times[*usual]) return;
  for (const std::optional<double>& time : times)
    task.predicted.push_back((time.value_or(*times[*usual]) - *times[*usual]) * std::numbers::ln2);
}

}  // namespace

std::vector<Task> tasks_of(const program::Draft& draft, const program::Lowerings& lowerings) {
  std::vector<Task> tasks;
  std::map<std::string, std::size_t> position;
  std::set<std::string> without;  // groups with one schedule
  for (const cost::Unit& unit : cost::units_of(draft.program, draft.report)) {
    const std::shared_ptr<const program::Lowering>& lowering = draft.report.steps[unit.first].group;
    if (lowering == nullptr || !lowering->made->schedule || without.contains(lowering->key))
      continue;
    if (const auto it = position.find(lowering->key); it != position.end()) {
      tasks[it->second].uses += unit.trip_count;
      continue;
    }
    Task task{.key = lowering->key,
              .what = unit.what,
              .uses = unit.trip_count,
              .group = lowering->group->group,
              .usual = *lowering->made->schedule};
    task.space = lower::schedule_space(task.group, lowerings.machine(), lowerings.options());
    trim(task);
    if (!position_of(task, task.usual)) task.space.insert(task.space.begin(), {task.usual, 0});
    if (task.space.size() < 2) {
      without.insert(task.key);
      continue;
    }
    add_features(task, lowerings);
    add_predictions(task, lowerings);
    position.emplace(task.key, tasks.size());
    tasks.push_back(std::move(task));
  }
  return tasks;
}

std::optional<std::size_t> position_of(const Task& task, const lower::GroupSchedule& schedule) {
  const auto it = std::ranges::find(task.space, schedule, &lower::ScheduleCandidate::schedule);
  if (it == task.space.end()) return std::nullopt;
  return static_cast<std::size_t>(it - task.space.begin());
}

}  // namespace tessera::tune
