#include "tessera/lower/schedule_features.h"

#include "tessera/lower/target_traits.h"

namespace tessera::lower {

std::unique_ptr<const ScheduleFeatures> schedule_features(const Group& group,
                                                          const machine::Machine& machine,
                                                          const GroupOptions& options) {
  const auto make = traits_of(machine).tiles_by_thread_blocks() ? block_features : panel_features;
  return make(group, machine, effective_options(group, machine, options));
}

std::span<const std::string_view> schedule_feature_names(const machine::Machine& machine) {
  return traits_of(machine).tiles_by_thread_blocks() ? block_feature_names()
                                                     : panel_feature_names();
}

}  // namespace tessera::lower
