#include <algorithm>
#include <limits>

#include "tessera/lower/contraction.h"
#include "tessera/tile/gpu/layout.h"
#include "tessera/tile/verify.h"

namespace tessera::lower {
namespace {

/// So many rows of all axes, with as few outside as can be, and of those along the last axes.
class RowTiles {
 public:
  explicit RowTiles(const IndexAxes& rows) : rows_(rows), tiles_(rows.size(), 1), best_(tiles_) {}

  std::vector<std::int64_t> of(std::int64_t all) {
    if (!rows_.empty()) choose(rows_.size() - 1, all, 1);
    return best_;
  }

 private:
  void choose(std::size_t axis, std::int64_t left, std::int64_t programs) {
    const std::int64_t extent = rows_[axis].extent;
    for (std::int64_t tile = std::min(left, tile::gpu::held_extent(extent)); tile > 0; tile /= 2) {
      tiles_[axis] = tile;
      const std::int64_t so_far = programs * ceil_div(extent, tile);
      if (so_far >= least_) continue;
      if (axis > 0) {
        choose(axis - 1, left / tile, so_far);
        continue;
      }
      least_ = so_far;
      best_ = tiles_;
    }
  }

  const IndexAxes& rows_;
  std::vector<std::int64_t> tiles_, best_;
  std::int64_t least_ = std::numeric_limits<std::int64_t>::max();
};

/// Whether an operand is a tensor in memory, which is zero out of bounds.
bool is_read(const Factor& factor) {
  return std::holds_alternative<node::Read>(factor.value.node());
}

/// Whether steps may not go past the end of a reduction over one axis: elements out of bounds are
/// zero in both operands if they are tensors in memory.
bool exact_ends(const Contraction& c) {
  return !is_read(c.a) || c.a.reads[0].box || (!c.known_b && !is_read(c.b));
}

/// Tile sizes along the reduction (k-step). A reduction over one axis may end within a step:
/// elements out of bounds are zero in both operands. That of a box may not: other channels follow.
AxisGroups sums_of(const Contraction& c, std::int64_t most) {
  AxisGroups sums = merged_sums(c);
  if (sums.empty()) return sums;
  if (sums.size() == 1 && !exact_ends(c)) {
    sums[0].tile = std::min(most, tile::gpu::held_extent(sums[0].extent()));
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

/// Extent of a tile: at most that of the axis, rounded up to a power of two.
std::int64_t tile_extent(std::int64_t extent, std::int64_t most) {
  constexpr std::int64_t kLeast = 16;
  return std::clamp(tile::gpu::held_extent(extent), std::min(kLeast, most), most);
}

/// Tile sizes with their estimated time.
struct Choice {
  ContractionTiles tiles = {};
  double cycles = std::numeric_limits<double>::infinity();
};

/// Time of a program on a multiprocessor (SM), in cycles.
struct StepTimes {
  double alone = 0;  // k-step of a program that is alone on the SM
  double pair = 0;   // k-step of two that share it
  double end = 0;    // epilogue
};

/// wgmma with 2-byte operands and k-steps of 64. Measured on an H200 with 870 configurations of 52
/// convolutions. Large tiles are bound by tensor cores, small ones by copy latency; boxes (padded
/// images) add address computation.
StepTimes hopper_pace(double sums, bool is_box) {
  constexpr double kLarge = 128 * 128, kMiddle = 64 * 128, kSmall = 64 * 64;
  // The largest read least, but nothing else runs while their results are written.
  const double end = sums * (sums > kLarge ? 0.16 : 0.14);
  if (sums > kMiddle) {
    const double step = sums * (sums > kLarge ? 0.0305 : 0.0325);
    return {.alone = step, .pair = 2 * step, .end = end};
  }
  if (sums > kSmall) return {.alone = 520, .pair = 940, .end = end};
  return is_box ? StepTimes{.alone = 430, .pair = 700, .end = end}
                : StepTimes{.alone = 330, .pair = 450, .end = end};
}

/// All other instructions: arithmetic, operands from L2, barriers.
StepTimes other_pace(double rows, double columns, bool matrix) {
  const double step = std::max(rows * columns * (matrix ? 0.03 : 0.25), (rows + columns) * 2) + 150;
  return {.alone = step, .pair = 2 * step};
}

/// Fastest tiles for this number of split-K parts.
Choice choice_of(const Contraction& c, const GroupOptions& options, const machine::Machine& machine,
                 std::int64_t parts) {
  struct Shape {
    std::int64_t rows, columns;
  };
  // Tile shapes for tensor cores, and for scalar multiplication.
  constexpr Shape kMatrix[] = {{128, 256}, {256, 128}, {128, 128}, {128, 64},
                               {64, 128},  {64, 64},   {64, 32},   {16, 64}};
  constexpr Shape kScalar[] = {{64, 64}, {32, 64}, {32, 32}, {16, 32}};
  const bool half = options.contraction_dtype != DType::F32, matrix = half || options.tf32;
  const bool hopper = half && machine.gpu->architecture == "sm_90a";
  const bool is_box = !c.a.reads.empty() && c.a.reads[0].box;
  Choice best;
  for (const Shape& shape :
       matrix ? std::span<const Shape>(kMatrix) : std::span<const Shape>(kScalar)) {
    ContractionTiles tiles;
    tiles.rows = RowTiles(c.rows).of(tile_extent(count(c.rows), shape.rows));
    tiles.columns = tile_extent(c.column.extent, shape.columns);
    tiles.sums = sums_of(c, half ? 64 : 32);
    std::int64_t programs = parts * count(c.batch) * ceil_div(c.column.extent, tiles.columns);
    for (std::size_t i = 0; i < c.rows.size(); ++i)
      programs *= ceil_div(c.rows[i].extent, tiles.rows[i]);
    std::int64_t steps = 1;
    for (const AxisGroup& group : tiles.sums) steps *= ceil_div(group.extent(), group.tile);
    constexpr std::int64_t kLarge = 128 * 128;
    if (matrix && !hopper && shape.rows * shape.columns > kLarge) continue;
    const auto m = static_cast<double>(tiles.row_count()), n = static_cast<double>(tiles.columns);
    const StepTimes pace = hopper ? hopper_pace(m * n, is_box) : other_pace(m, n, matrix);
    const std::int64_t waves = ceil_div(programs, machine.gpu->multiprocessors);
    const auto pairs = static_cast<double>(waves / 2), rest = static_cast<double>(waves % 2);
    const auto rounds = static_cast<double>(ceil_div(steps, parts));
    const double cycles =
        pairs * (rounds * pace.pair + 2 * pace.end) + rest * (rounds * pace.alone + pace.end);
    if (cycles >= best.cycles) continue;
    best = {.tiles = std::move(tiles), .cycles = cycles};
  }
  return best;
}

}  // namespace

ContractionTiles gpu_tiles(const Contraction& c, const GroupOptions& options,
                           const machine::Machine& machine) {
  return choice_of(c, options, machine, 1).tiles;
}

SplitK choose_split_k(const Contraction& c, const GroupOptions& options,
                      const machine::Machine& machine) {
  // Cycles of another launch, of each part that it goes through, and of each of the sums that it
  // reads: measured on an H200. Sums beyond the L2 cache are written to memory and read again.
  constexpr double kLaunch = 2500, kPart = 330, kRead = 0.00085, kReadFromMemory = 0.0035;
  constexpr double kCached = 6 << 20;  // sums
  const auto results = static_cast<double>(count(c.batch) * count(c.rows) * c.column.extent);
  SplitK best;
  double least = choice_of(c, options, machine, 1).cycles;
  for (const std::int64_t parts : {2, 3, 4, 5, 6, 7, 8, 12, 16}) {
    const Choice choice = choice_of(c, options, machine, parts);
    const auto number = static_cast<double>(parts);
    const double each = results * number > kCached ? kReadFromMemory : kRead;
    const double cycles = choice.cycles + kLaunch + kPart * number + results * each * (number + 1);
    if (cycles >= least) continue;
    const AxisGroups& sums = choice.tiles.sums;
    if (sums.size() == 1 && sums[0].axes.size() == 1 && !exact_ends(c)) {
      const AxisGroup& group = sums[0];
      const std::int64_t length =
          ceil_div(ceil_div(group.extent(), parts), group.tile) * group.tile;
      if (c.sums_over(group.axes[0]) && c.widened.empty() &&
          length * (parts - 1) < group.extent()) {
        least = cycles;
        best = {.axis = group.name(), .parts = parts, .length = length};
      }
      continue;
    }
    // Along an axis of which each part has whole steps.
    for (const AxisGroup& group : sums) {
      std::int64_t whole = group.extent();
      for (const IndexAxis& axis : group.axes) {
        // An axis that is cut is the first of those that are run through as one.
        const std::int64_t rest = axis.extent / parts * (whole / axis.extent);
        if (c.sums_over(axis) && !c.widened.contains(axis.name) && axis.extent % parts == 0 &&
            rest % group.tile == 0) {
          least = cycles;
          best = {.axis = axis.name, .parts = parts, .length = axis.extent / parts};
        }
        whole /= axis.extent;
      }
    }
  }
  return best;
}

}  // namespace tessera::lower
