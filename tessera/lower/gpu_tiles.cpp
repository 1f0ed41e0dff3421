#include <algorithm>
#include <bit>
#include <limits>

#include "tessera/lower/contraction.h"
#include "tessera/tile/verify.h"

namespace tessera::lower {
namespace {

std::int64_t power_of_two(std::int64_t at_least) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(at_least, 1))));
}

/// So many rows of the last two axes, with as few outside as can be.
std::vector<std::int64_t> rows_of(const Contraction& c, std::int64_t all) {
  std::vector<std::int64_t> tiles(c.rows.size(), 1);
  if (c.rows.empty()) return tiles;
  const std::int64_t inner = c.rows.back().extent;
  if (c.rows.size() == 1) {
    tiles.back() = all;
    return tiles;
  }
  const std::int64_t outer = c.rows[c.rows.size() - 2].extent;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t x = 1; x <= std::min(all, power_of_two(inner)); x *= 2) {
    const std::int64_t y = std::min(all / x, power_of_two(outer));
    const std::int64_t tiles_x = ceil_div(inner, x), tiles_y = ceil_div(outer, y);
    if (tiles_x * tiles_y * all > least) continue;
    least = tiles_x * tiles_y * all;
    tiles.back() = x;
    tiles[c.rows.size() - 2] = y;
  }
  return tiles;
}

/// Whether a factor is what lies in memory: outside of it, that is zero.
bool is_read(const Factor& factor) {
  return std::holds_alternative<node::Read>(factor.value.node());
}

/// As much of the sum as one step takes. Where it is one axis it may end within a step: what lies
/// outside is zero in both factors.
AxisGroups sums_of(const Contraction& c, std::int64_t most) {
  AxisGroups sums = merged_sums(c);
  if (sums.empty()) return sums;
  if (sums.size() == 1 && is_read(c.a) && (c.known_b || is_read(c.b))) {
    sums[0].tile = std::min(most, power_of_two(sums[0].extent()));
    return sums;
  }
  std::int64_t& last = sums.back().tile;
  const std::int64_t extent = sums.back().extent();
  while (most > 1 && extent % most != 0) most /= 2;
  last = most;
  constexpr std::int64_t kLeast = 16;
  if (last >= kLeast) return sums;
  // Short pieces of memory: as many of them as come to a step.
  std::int64_t taken = 1;
  for (auto group = sums.rbegin(); group != sums.rend(); ++group) {
    if (taken * group->extent() > 4 * kLeast) break;
    taken *= group->tile = group->extent();
  }
  return sums;
}

/// How many of a dimension a tile has: no more than there are, rounded up.
std::int64_t part_of(std::int64_t extent, std::int64_t most) {
  constexpr std::int64_t kLeast = 16;
  return std::clamp(power_of_two(extent), std::min(kLeast, most), most);
}

}  // namespace

ContractionTiles gpu_tiles(const Contraction& c, DType factors, const machine::Machine& machine) {
  struct Shape {
    std::int64_t rows, columns;
  };
  // Of tensor cores, and of multiplications one by one.
  constexpr Shape kMatrix[] = {{128, 128}, {128, 64}, {64, 128}, {64, 64}, {64, 32}, {16, 64}};
  constexpr Shape kScalar[] = {{64, 64}, {32, 64}, {32, 32}, {16, 32}};
  const bool half = factors != DType::F32;
  ContractionTiles best;
  double least = std::numeric_limits<double>::infinity();
  for (const Shape& shape :
       half ? std::span<const Shape>(kMatrix) : std::span<const Shape>(kScalar)) {
    ContractionTiles tiles;
    tiles.rows = rows_of(c, part_of(count(c.rows), shape.rows));
    tiles.columns = part_of(c.column.extent, shape.columns);
    tiles.sums = sums_of(c, half ? 64 : 32);
    std::int64_t programs = count(c.batch) * ceil_div(c.column.extent, tiles.columns);
    for (std::size_t i = 0; i < c.rows.size(); ++i)
      programs *= ceil_div(c.rows[i].extent, tiles.rows[i]);
    // Cycles of a step: its products, its operands from the second-level cache, and its barriers.
    const auto m = static_cast<double>(tiles.row_count()), n = static_cast<double>(tiles.columns);
    const double products = m * n * (half ? 0.03 : 0.25), operands = (m + n) * 2;
    const double waves = static_cast<double>(ceil_div(programs, machine.multiprocessors));
    const double cycles = waves * (std::max(products, operands) + 150);
    if (cycles >= least) continue;
    least = cycles;
    best = tiles;
  }
  return best;
}

}  // namespace tessera::lower
