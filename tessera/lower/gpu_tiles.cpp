#include "tessera/lower/gpu_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "tessera/lower/gpu_cost.h"
#include "tessera/tile/gpu/layout.h"
#include "tessera/tile/gpu/plan.h"
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

/// Whether both operands are tensors in memory whose last axis is none of the reduction, as those
/// of the gradient of a convolution's weights: any box of the reduction's axes is as good to copy.
bool lie_across(const Contraction& c) {
  const auto lies_across = [&](const Factor& factor) {
    return is_read(factor) && !factor.reads[0].box &&
           std::ranges::none_of(c.sums, [&](const IndexAxis& axis) {
             return factor.reads[0].at.factor(axis.name) == 1;
           });
  };
  return !c.known_b && lies_across(c.a) && lies_across(c.b);
}

/// Takes a box of axes as the k-step: powers of two that divide the axes, as asynchronous copies
/// need them. Gives whether there is a box that is large enough for tensor cores.
bool take_box(AxisGroups& sums, std::int64_t most) {
  constexpr std::int64_t kLeastBox = 32;
  AxisGroups box = sums;
  std::int64_t taken = 1;
  for (auto group = box.rbegin(); group != box.rend(); ++group) {
    const std::int64_t power = group->extent() & -group->extent();
    taken *= group->tile = std::min(power, most / taken);
  }
  if (taken < std::min(kLeastBox, most)) return false;
  sums = std::move(box);
  return true;
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
  if (lie_across(c) && take_box(sums, most)) return sums;
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

/// Usual k-step: two rows of 128 bytes of tensor-core operands, or one.
std::int64_t usual_step(const GroupOptions& options) {
  return options.contraction_dtype != DType::F32 ? 64 : 32;
}

/// Tile of at most so many rows and columns.
struct TileShape {
  std::int64_t rows, columns;
};

ContractionTiles tiles_of(const Contraction& c, const TileShape& shape, std::int64_t step) {
  return {.rows = RowTiles(c.rows).of(tile_extent(count(c.rows), shape.rows)),
          .columns = tile_extent(c.column.extent, shape.columns),
          .sums = sums_of(c, step)};
}

/// Tile sizes with their estimated time.
struct Choice {
  ContractionTiles tiles = {};
  double cycles = std::numeric_limits<double>::infinity();
};

/// Fastest tiles for this number of split-K parts.
Choice choice_of(const Contraction& c, const GroupOptions& options, const machine::Machine& machine,
                 std::int64_t parts) {
  // Tile shapes for tensor cores, and for scalar multiplication.
  constexpr TileShape kMatrix[] = {{128, 256}, {256, 128}, {128, 128}, {128, 64},
                                   {64, 128},  {64, 64},   {64, 32},   {16, 64}};
  constexpr TileShape kScalar[] = {{64, 64}, {32, 64}, {32, 32}, {16, 32}};
  const GpuContractionCost cost(c, options, machine);
  Choice best;
  for (const TileShape& shape : cost.uses_tensor_cores() ? std::span<const TileShape>(kMatrix)
                                                         : std::span<const TileShape>(kScalar)) {
    constexpr std::int64_t kLarge = 128 * 128;
    if (cost.uses_tensor_cores() && !cost.uses_wgmma() && shape.rows * shape.columns > kLarge)
      continue;
    ContractionTiles tiles = tiles_of(c, shape, usual_step(options));
    const double cycles = cost(tiles, tiles.sum_count(), parts);
    if (cycles >= best.cycles) continue;
    best = {.tiles = std::move(tiles), .cycles = cycles};
  }
  return best;
}

/// Checks what a block has: registers for the accumulators, shared memory for the stages of both
/// operands. Whether there is room for all else of a kernel, its form S says.
Expected<Done> check_block(const ContractionTiles& tiles, const tile::BlockRequest& request,
                           const GroupOptions& options, const machine::Machine& machine) {
  constexpr std::int64_t kRegisters = 65536, kMostOfAThread = 255, kAddresses = 32, kWarp = 32;
  const std::int64_t accumulators = tiles.row_count() * tiles.columns;
  const std::int64_t warps = request.warps > 0 ? request.warps : usual_warps(accumulators);
  const std::int64_t threads = warps * kWarp;
  const std::int64_t left = std::min(kRegisters / threads, kMostOfAThread) - kAddresses;
  if (accumulators > left * threads)
    return illegal_schedule(fmt::format("{} accumulators do not fit into the registers of {} warps",
                                        accumulators, warps));
  const std::int64_t width = byte_width(options.contraction_dtype);
  const std::int64_t bytes =
      std::max(request.stages, 2) * width * tiles.sum_count() * (tiles.row_count() + tiles.columns);
  const std::int64_t most = machine::shared_bytes_of_block(machine.gpu->architecture);
  if (bytes > most)
    return illegal_schedule(
        fmt::format("{} bytes of stages do not fit into the shared memory of a "
                    "block, which has {}",
                    bytes, most));
  return Done{};
}

bool is_power_of_two(std::int64_t number) {
  return number > 0 && std::has_single_bit(static_cast<std::uint64_t>(number));
}

/// Requests of blocks that may differ from the usual ones, the empty one first.
std::vector<tile::BlockRequest> block_requests(const ContractionTiles& tiles,
                                               const GpuContractionCost& cost) {
  using Producers = tile::BlockRequest::Producers;
  constexpr std::int64_t kRowsOfAWarpgroup = 64;
  std::int64_t steps = 1;
  for (const AxisGroup& group : tiles.sums) steps *= ceil_div(group.extent(), group.tile);
  std::vector<tile::BlockRequest> requests = {{}};
  if (!cost.uses_tensor_cores() || steps < 2) return requests;
  const bool may_specialize = cost.uses_wgmma() && tiles.row_count() >= kRowsOfAWarpgroup;
  const std::int64_t warps = usual_warps(tiles.row_count() * tiles.columns);
  for (const int more_warps : {0, 8})
    for (const auto producers :
         {Producers::Auto, Producers::None, Producers::Async, Producers::Tma})
      for (const int stages : {0, 2, 3, 4, 6}) {
        const bool specializes = producers == Producers::Async || producers == Producers::Tma;
        constexpr int kLeastStagesOfProducers = 3;
        if (more_warps != 0 && more_warps <= warps) continue;
        if (producers != Producers::Auto && !may_specialize) continue;
        if (specializes && stages != 0 && stages < kLeastStagesOfProducers) continue;
        if (stages > steps + 1) continue;
        const tile::BlockRequest request{stages, more_warps, producers};
        if (!request.is_empty()) requests.push_back(request);
      }
  return requests;
}

}  // namespace

std::int64_t usual_warps(std::int64_t accumulators) {
  constexpr std::int64_t kLeastThreads = 128, kMostThreads = 512, kWarp = 32;
  const auto threads = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(accumulators / tile::gpu::kMatrixRegisters)));
  return std::clamp(threads, kLeastThreads, kMostThreads) / kWarp;
}

std::int64_t usual_step_of(const Contraction& c, const GroupOptions& options) {
  return ContractionTiles{.sums = sums_of(c, usual_step(options))}.sum_count();
}

ContractionTiles gpu_tiles(const Contraction& c, const GroupOptions& options,
                           const machine::Machine& machine) {
  return choice_of(c, options, machine, 1).tiles;
}

std::optional<SplitK> split_k(const Contraction& c, const GroupOptions& options,
                              std::int64_t parts) {
  const AxisGroups sums = sums_of(c, usual_step(options));
  if (sums.size() == 1 && sums[0].axes.size() == 1 && !exact_ends(c)) {
    const AxisGroup& group = sums[0];
    const std::int64_t length = ceil_div(ceil_div(group.extent(), parts), group.tile) * group.tile;
    if (c.sums_over(group.axes[0]) && c.widened.empty() && length * (parts - 1) < group.extent())
      return SplitK{.axis = group.name(), .parts = parts, .length = length};
    return std::nullopt;
  }
  // Along an axis of which each part has whole steps.
  std::optional<SplitK> found;
  for (const AxisGroup& group : sums) {
    std::int64_t whole = group.extent();
    for (const IndexAxis& axis : group.axes) {
      // An axis that is cut is the first of those that are run through as one.
      const std::int64_t rest = axis.extent / parts * (whole / axis.extent);
      if (c.sums_over(axis) && !c.widened.contains(axis.name) && axis.extent % parts == 0 &&
          rest % group.tile == 0)
        found = {.axis = axis.name, .parts = parts, .length = axis.extent / parts};
      whole /= axis.extent;
    }
  }
  return found;
}

SplitK choose_split_k(const Contraction& c, const GroupOptions& options,
                      const machine::Machine& machine) {
  const GpuContractionCost cost(c, options, machine);
  SplitK best;
  double least = choice_of(c, options, machine, 1).cycles;
  for (const std::int64_t parts : kSplitKParts) {
    const double cycles = choice_of(c, options, machine, parts).cycles + cost.of_parts(parts);
    if (cycles >= least) continue;
    if (const auto split = split_k(c, options, parts)) {
      least = cycles;
      best = *split;
    }
  }
  return best;
}

Expected<ContractionTiles> block_tiles_of(const Contraction& c,
                                          const BlockContractionSchedule& schedule,
                                          const GroupOptions& options,
                                          const machine::Machine& machine) {
  ContractionTiles tiles{.rows = schedule.rows,
                         .columns = schedule.columns,
                         .sums = merged_sums(c),
                         .columns_outer = schedule.columns_outer};
  if (tiles.rows.size() != c.rows.size() || schedule.sums.size() != tiles.sums.size())
    return illegal_schedule("the contraction has other axes");
  for (std::size_t i = 0; i < c.rows.size(); ++i)
    if (!is_power_of_two(tiles.rows[i]) || tiles.rows[i] > tile::gpu::held_extent(c.rows[i].extent))
      return illegal_schedule("a tile of rows is no power of two, or larger than its axis");
  if (!is_power_of_two(tiles.columns) ||
      tiles.columns > tile_extent(c.column.extent, tile::kMostElements))
    return illegal_schedule("a tile of columns is no power of two, or larger than its axis");
  const bool may_end_within =
      tiles.sums.size() == 1 && !exact_ends(c) && is_power_of_two(schedule.sums[0]);
  bool is_cut = false;
  for (std::size_t i = tiles.sums.size(); i-- > 0;) {
    AxisGroup& group = tiles.sums[i];
    group.tile = schedule.sums[i];
    const bool divides = group.tile > 0 && group.extent() % group.tile == 0;
    const bool is_last_part =
        may_end_within && group.tile <= tile::gpu::held_extent(group.extent());
    // Packed weights are read in the order of the reduction.
    if ((!divides && !is_last_part) || (is_cut && group.tile != 1 && c.known_b))
      return illegal_schedule("a k-step does not divide the reduction");
    is_cut = is_cut || group.tile < group.extent();
  }
  if (tiles.row_count() * tiles.sum_count() > tile::kMostElements ||
      tiles.sum_count() * tiles.columns > tile::kMostElements)
    return illegal_schedule("a tile is too large");
  TESSERA_TRY_DONE(check_block(tiles, schedule.block, options, machine));
  return tiles;
}

BlockContractionSchedule schedule_of(const ContractionTiles& tiles) {
  BlockContractionSchedule schedule{
      .rows = tiles.rows, .columns = tiles.columns, .columns_outer = tiles.columns_outer};
  for (const AxisGroup& group : tiles.sums) schedule.sums.push_back(group.tile);
  return schedule;
}

ScheduleCandidates block_candidates(const Contraction& c, const GroupOptions& options,
                                    const machine::Machine& machine) {
  const GpuContractionCost cost(c, options, machine);
  const std::int64_t usual = usual_step(options);
  const std::int64_t usual_sums = usual_step_of(c, options);
  std::vector<Choice> choices;
  for (const std::int64_t step : {usual / 2, usual, 2 * usual}) {
    // The k-step is where partial sums are added.
    if (options.exact && step != usual) continue;
    for (const std::int64_t rows : {16, 32, 64, 128, 256})
      for (const std::int64_t columns : {16, 32, 64, 128, 256}) {
        ContractionTiles tiles = tiles_of(c, {rows, columns}, step);
        const BlockContractionSchedule schedule = schedule_of(tiles);
        if (std::ranges::any_of(
                choices, [&](const Choice& one) { return schedule_of(one.tiles) == schedule; }))
          continue;
        const double cycles = cost(tiles, usual_sums);
        choices.push_back({std::move(tiles), cycles});
      }
  }
  ScheduleCandidates space;
  const auto add = [&](const BlockContractionSchedule& schedule, double cycles) {
    if (block_tiles_of(c, schedule, options, machine)) space.push_back({schedule, cycles});
  };
  for (const Choice& one : choices)
    for (const tile::BlockRequest& request : block_requests(one.tiles, cost)) {
      BlockContractionSchedule schedule = schedule_of(one.tiles);
      schedule.block = request;
      // Candidates with the scheduler's own choice of stages and warps are ranked first.
      const double cycles = one.cycles * (request.is_empty() ? 1 : 1.05);
      add(schedule, cycles);
      if (request.stages != 0 || ceil_div(c.column.extent, one.tiles.columns) == 1 ||
          one.tiles.row_count() >= count(c.rows))
        continue;  // one order is the other
      schedule.columns_outer = true;
      add(schedule, cycles * 1.05);
    }
  std::ranges::stable_sort(space, {}, &ScheduleCandidate::cycles);
  return space;
}

}  // namespace tessera::lower
