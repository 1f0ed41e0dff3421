#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/lower/group.h"

namespace tessera::lower {

/// Features of a fusion group and one of its schedules, for learned cost models. They are computed
/// without lowering. Groups that are contractions have features for two families of schedules,
/// `contraction` and `winograd`; other groups and schedules have none.
class ScheduleFeatures {
 public:
  using Vector = std::vector<float>;

  /// None where the group is not a contraction on a CPU.
  static std::optional<ScheduleFeatures> of(const Group& group, const machine::Machine& machine,
                                            const GroupOptions& options);
  ScheduleFeatures(ScheduleFeatures&&) noexcept;
  ScheduleFeatures& operator=(ScheduleFeatures&&) noexcept;
  ~ScheduleFeatures();

  /// One number per name of names(); none for schedules of other families and illegal ones.
  std::optional<Vector> operator()(const GroupSchedule& schedule) const;

  /// Multiply-adds of the definition: models predict time per unit of work.
  double work() const;

  bool is_quantized() const;

  static std::span<const std::string_view> names();

 private:
  struct Forms;
  explicit ScheduleFeatures(std::unique_ptr<Forms> forms);
  std::unique_ptr<Forms> forms_;
};

}  // namespace tessera::lower
