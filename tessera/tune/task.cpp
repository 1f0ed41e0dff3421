#include "tessera/tune/task.h"

#include <algorithm>

namespace tessera::tune {

std::optional<std::size_t> position_of(const Task& task, std::string_view schedule) {
  const auto it = std::ranges::find(task.space, schedule, &Candidate::schedule);
  if (it == task.space.end()) return std::nullopt;
  return static_cast<std::size_t>(it - task.space.begin());
}

}  // namespace tessera::tune
