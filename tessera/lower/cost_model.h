#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/lower/group.h"
#include "tessera/lower/tree_model.h"

namespace tessera::lower {

/// A file of `cost-models/`, as it was when this library was built.
struct ShippedCostModel {
  std::string_view name, text;
};
std::span<const ShippedCostModel> shipped_cost_models();

/// Learned cost model of the family of a machine, for contractions of f32 in one thread; null where
/// none ships: the analytic estimates rank schedules there.
const TreeModel* cost_model_for(const machine::Machine& machine, const GroupOptions& options);

/// Predicted logarithm to base 2 of the time of each candidate, relative to the others of its
/// group; none for candidates without features. Empty where there is no model for the group.
std::vector<std::optional<double>> predicted_times(const Group& group,
                                                   const machine::Machine& machine,
                                                   const GroupOptions& options,
                                                   std::span<const ScheduleCandidate> candidates);

/// Schedule of a contraction of f32 that the analytic estimates choose.
std::optional<GroupSchedule> analytic_schedule(const Group& group, const machine::Machine& machine,
                                               const GroupOptions& options);

/// Schedule of a contraction that the learned model predicts to be the fastest, of those with the
/// lowest analytic estimates. None where there is no model, and where its gain over the analytic
/// choice is within the error of the model.
std::optional<GroupSchedule> learned_schedule(const Group& group, const machine::Machine& machine,
                                              const GroupOptions& options);

}  // namespace tessera::lower
