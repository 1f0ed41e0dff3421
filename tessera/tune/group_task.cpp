#include "tessera/tune/group_task.h"

#include <algorithm>
#include <array>
#include <cmath>
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
void trim(std::vector<lower::ScheduleCandidate>& space, const lower::GroupSchedule& usual) {
  std::array<std::size_t, std::variant_size_v<lower::GroupSchedule>> kept = {};
  std::erase_if(space, [&](const lower::ScheduleCandidate& one) {
    return ++kept[one.schedule.index()] > kMostOfStrategy && one.schedule != usual;
  });
}

void append(std::vector<double>& point, std::int64_t number) {
  point.push_back(std::log2(1.0 + static_cast<double>(number)));
}

struct Coordinates {
  std::vector<double>& point;

  void operator()(const lower::ContractionSchedule& s) const {
    for (const std::int64_t row : s.rows) append(point, row);
    append(point, s.columns);
    for (const std::int64_t sum : s.sums) append(point, sum);
    append(point, s.panel);
    append(point, s.columns_outer ? 1 : 0);
  }
  void operator()(const lower::BlockContractionSchedule& s) const {
    for (const std::int64_t row : s.rows) append(point, row);
    append(point, s.columns);
    for (const std::int64_t sum : s.sums) append(point, sum);
    for (const std::int64_t number :
         {std::int64_t{s.columns_outer ? 1 : 0}, s.split, std::int64_t{s.block.stages},
          std::int64_t{s.block.warps}, static_cast<std::int64_t>(s.block.producers)})
      append(point, number);
  }
  void operator()(const lower::WinogradSchedule& s) const {
    for (const std::int64_t number :
         {s.m, s.images, s.slices, s.rows, s.columns, s.filters, s.panel, s.programs})
      append(point, number);
  }
  void operator()(const lower::AttentionSchedule& s) const {
    append(point, s.rows);
    append(point, s.keys);
  }
  void operator()(const lower::RowsSchedule& s) const {
    for (const std::int64_t block : s.blocks) append(point, block);
  }
  void operator()(const lower::LoopsSchedule& s) const {
    for (const auto& stage : s.stages)
      for (const tile::Step& step : stage)
        for (const std::int64_t number : step.numbers) append(point, number);
  }
};

void add_features(GroupTask& task, const program::Lowerings& lowerings) {
  const auto features =
      lower::schedule_features(task.group, lowerings.machine(), lowerings.options());
  if (features == nullptr) return;
  for (const lower::GroupSchedule& schedule : task.schedules)
    task.features.push_back(features->operator()(schedule).value_or(std::vector<float>{}));
}

/// Logarithms of predicted times; a candidate without a prediction has that of the default.
void add_predictions(GroupTask& task, const program::Lowerings& lowerings) {
  std::vector<lower::ScheduleCandidate> space;
  for (std::size_t i = 0; i < task.schedules.size(); ++i)
    space.push_back({task.schedules[i], task.space[i].cycles});
  const auto times =
      lower::predicted_times(task.group, lowerings.machine(), lowerings.options(), space);
  if (times.empty() || !times[task.usual]) return;
  const double usual = *times[task.usual];
  for (const std::optional<double>& time : times)
    task.predicted.push_back((time.value_or(usual) - usual) * std::numbers::ln2);
}

}  // namespace

void GroupTask::set_space(const std::vector<lower::ScheduleCandidate>& candidates,
                          const lower::GroupSchedule& default_schedule) {
  const auto add = [&](const lower::ScheduleCandidate& one) {
    Candidate candidate{.schedule = lower::to_text(one.schedule), .cycles = one.cycles};
    candidate.point.push_back(static_cast<double>(one.schedule.index()));
    std::visit(Coordinates{candidate.point}, one.schedule);
    space.push_back(std::move(candidate));
    schedules.push_back(one.schedule);
  };
  const auto found =
      std::ranges::find(candidates, default_schedule, &lower::ScheduleCandidate::schedule);
  if (found == candidates.end()) add({default_schedule, 0});
  usual = found == candidates.end() ? 0 : static_cast<std::size_t>(found - candidates.begin());
  for (const lower::ScheduleCandidate& one : candidates) add(one);
}

std::vector<GroupTask> tasks_of(const program::Draft& draft, const program::Lowerings& lowerings) {
  std::vector<GroupTask> tasks;
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
    GroupTask task;
    task.key = lowering->key;
    task.what = unit.what;
    task.uses = unit.trip_count;
    task.group = lowering->group->group;
    auto space = lower::schedule_space(task.group, lowerings.machine(), lowerings.options());
    trim(space, *lowering->made->schedule);
    task.set_space(space, *lowering->made->schedule);
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

}  // namespace tessera::tune
