#include <algorithm>

#include "tessera/lower/group.h"

namespace tessera::lower {

Expected<Attempt> lower_elements(const Group& group, const machine::Machine& machine,
                                 const GroupOptions&) {
  TESSERA_TRY(const tile::Schedule schedule, default_schedule(group.stages, machine));
  GroupCode code{.strategy = "loops"};
  TESSERA_TRY(code.kernels, lower(schedule));
  TESSERA_TRY(const std::vector<Operand> tensors, tensors_of(group.stages));
  for (const tile::Stage& stage : group.stages)
    if (std::ranges::count(group.results, stage.name()) == 0)
      code.temporaries.push_back(*std::ranges::find(tensors, stage.name(), &Operand::name));
  return Attempt(std::move(code));
}

}  // namespace tessera::lower
