#include "tessera/lower/program_order.h"

#include <algorithm>

namespace tessera::lower {
namespace {

/// When the last block ends.
double makespan(const ProgramOrder& order, std::int64_t together) {
  const auto blocks = static_cast<std::int64_t>(order.lengths.size());
  std::vector<double> ends(static_cast<std::size_t>(order.processors));
  for (std::int64_t program = 0; program < blocks * order.heads; ++program) {
    const std::int64_t round = program / order.processors, place = program % order.processors;
    const std::int64_t processor = round % 2 == 0 ? place : order.processors - 1 - place;
    ends[static_cast<std::size_t>(processor)] +=
        order.lengths[static_cast<std::size_t>(program % (blocks * together) / together)];
  }
  return *std::ranges::max_element(ends);
}

}  // namespace

std::int64_t heads_at_a_time(const ProgramOrder& order) {
  constexpr std::int64_t kCached = 32 << 20;
  constexpr double kFromMemory = 1.1;
  std::int64_t best = 1;
  double least = 0;
  for (std::int64_t together = 1; together <= order.heads; ++together) {
    if (order.heads % together != 0) continue;
    const bool is_cached = together * order.bytes_of_head <= kCached;
    const double time = makespan(order, together) * (is_cached ? 1 : kFromMemory);
    if (together == 1 || time < least) {
      least = time;
      best = together;
    }
  }
  return best;
}

}  // namespace tessera::lower
