#include "tessera/driver/schedule_choice.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tessera/lower/cost_model.h"

namespace tessera {
namespace {

constexpr std::size_t kMostAlternatives = 6;

/// Cost of each candidate, comparable within a strategy: 0 if it is not known.
std::vector<double> costs_of(const lower::Group& group, const program::Lowerings& lowerings,
                             const std::vector<lower::ScheduleCandidate>& space, bool is_learned) {
  std::vector<double> costs(space.size());
  for (std::size_t i = 0; i < space.size(); ++i) costs[i] = space[i].cycles;
  if (!is_learned) return costs;
  const auto predicted =
      lower::predicted_times(group, lowerings.machine(), lowerings.options(), space);
  for (std::size_t i = 0; i < predicted.size(); ++i)
    costs[i] = predicted[i] ? std::exp2(*predicted[i]) : 0;
  return costs;
}

}  // namespace

ScheduleChoice schedule_choice(const program::Lowering& lowering,
                               const program::Lowerings& lowerings) {
  ScheduleChoice choice;
  if (!lowering.made || !lowering.made->schedule || lowering.group == nullptr) return choice;
  const lower::GroupSchedule& chosen = *lowering.made->schedule;
  const lower::Group& group = lowering.group->group;
  choice.schedule = lower::to_text(chosen);
  const auto space = lower::schedule_space(group, lowerings.machine(), lowerings.options());
  const auto learned = lower::learned_schedule(group, lowerings.machine(), lowerings.options());
  const std::vector<double> costs = costs_of(group, lowerings, space, learned == chosen);
  choice.candidates = space.size();
  const auto at = std::ranges::find(space, chosen, &lower::ScheduleCandidate::schedule);
  const double own = at == space.end() ? 0 : costs[static_cast<std::size_t>(at - space.begin())];
  choice.by = lowering.is_scheduled ? "tuning, or a file of schedules"
              : learned == chosen   ? "the learned cost model"
              : own > 0             ? "the analytic cost model"
                                    : "the default of its strategy";
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < space.size(); ++i)
    if (space[i].schedule != chosen) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return costs[i] > 0 ? costs[i] : HUGE_VAL;  // those without a prediction come last
  });
  std::set<std::size_t> strategies;
  std::ranges::stable_partition(
      order, [&](std::size_t i) { return strategies.insert(space[i].schedule.index()).second; });
  for (const std::size_t i : order) {
    if (choice.alternatives.size() == kMostAlternatives) break;
    const bool is_comparable = own > 0 && space[i].schedule.index() == chosen.index();
    choice.alternatives.push_back({.schedule = lower::to_text(space[i].schedule),
                                   .cost = is_comparable ? costs[i] / own : 0});
  }
  return choice;
}

}  // namespace tessera
