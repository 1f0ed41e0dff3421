#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/lower/group.h"

namespace tessera::lower {

/// Features of a fusion group and its schedules, for learned cost models. They are computed without
/// lowering. Groups that are contractions have features: on a CPU for the schedules `contraction`
/// and `winograd`, on a GPU for `block_contraction`.
class ScheduleFeatures {
 public:
  using Vector = std::vector<float>;

  virtual ~ScheduleFeatures() = default;

  /// One number per name of schedule_feature_names(); none for schedules of other families and
  /// illegal ones.
  virtual std::optional<Vector> operator()(const GroupSchedule& schedule) const = 0;
  /// Multiply-adds of the definition: models predict time per unit of work.
  virtual double work() const = 0;
  virtual bool is_quantized() const = 0;
};

/// Features of the schedules of a group; null where it is no contraction.
std::unique_ptr<const ScheduleFeatures> schedule_features(const Group& group,
                                                          const machine::Machine& machine,
                                                          const GroupOptions& options);
/// Features of contractions by packed panels (a CPU).
std::unique_ptr<const ScheduleFeatures> panel_features(const Group& group,
                                                       const machine::Machine& machine,
                                                       const GroupOptions& options);
/// Features of contractions by thread blocks (a GPU).
std::unique_ptr<const ScheduleFeatures> block_features(const Group& group,
                                                       const machine::Machine& machine,
                                                       const GroupOptions& options);

std::span<const std::string_view> schedule_feature_names(const machine::Machine& machine);
std::span<const std::string_view> panel_feature_names();
std::span<const std::string_view> block_feature_names();

}  // namespace tessera::lower
