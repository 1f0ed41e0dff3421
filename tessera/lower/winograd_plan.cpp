#include <algorithm>

#include "tessera/lower/range.h"
#include "tessera/lower/winograd.h"
#include "tessera/tile/cpu/panels.h"

namespace tessera::lower {
namespace {

/// Costs are in multiplications and additions at the machine's best rate. The numbers were measured
/// on a Neoverse V1; what they stand for is much the same wherever vectors are added and
/// multiplied, but for the costs of bytes, which follow from how many operations a machine does
/// while it waits (`operations_per_byte`).
///
/// Matmuls reach nearly the peak rate, closer for longer reductions; an implicit-GEMM convolution a
/// little less.
constexpr double kProducts = 0.95, kDirect = 0.85, kShortSums = 8;
/// Cost of an element of a transform, and of one that a matmul reads from it: mostly loads and
/// stores.
constexpr double kTransformed = 25, kPacked = 20;
/// Cost of a byte of weights per read, from L2, L3 or memory; and of the space that it occupies
/// while the program runs.
constexpr double kNear = 1.5, kFar = 4, kMemory = 8, kRoom = 3;
/// Lanes that a Neoverse V1 multiplies and adds per cycle: four vectors of 16 bytes.
constexpr double kLanesPerCycle = 16;
/// Fraction of a program's time that is lost to load imbalance.
constexpr double kWaiting = 0.1;
/// Least estimated speedup over direct convolution.
constexpr double kWorth = 1.1;
constexpr std::int64_t kMostTiles = 128;

double real(std::int64_t x) {
  return static_cast<double>(x);
}

/// Operations in the time of reading a byte from beyond L2, relative to a Neoverse V1: a core of
/// either architecture reads about as many bytes per cycle, but two vectors of 64 bytes multiply
/// and add twice as many lanes. Sapphire Rapids: 8 per byte from L3, 15 from memory, beside the
/// time of the matmuls, for 128 to 512 channels of 7 x 7 and 8 x 8 pixels.
double operations_per_byte(const machine::Machine& machine) {
  if (machine.architecture != machine::Architecture::X86_64) return 1;
  return std::max(1.0, 2 * machine.vector_bytes / 4 / kLanesPerCycle);
}

/// Blocks of nearly equal size, for every number of them that makes a difference.
std::vector<std::int64_t> block_sizes(std::int64_t extent) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t count = 1; count <= extent; ++count)
    if (const std::int64_t size = ceil_div(extent, count); sizes.empty() || size != sizes.back())
      sizes.push_back(size);
  return sizes;
}

/// Searches for the fastest tiling by the cost model above.
class Planner {
 public:
  Planner(const Convolution3x3& conv, const machine::Machine& machine)
      : conv_(conv),
        machine_(machine),
        tile_(tile::cpu::register_tile(tile::cpu::MatmulUnit::Lanes, machine)),
        lanes_(machine.vector_bytes / 4) {}

  /// Candidate schedules and their costs.
  std::vector<std::pair<WinogradSchedule, double>> run() {
    for (const std::int64_t m : {4, 2}) {
      const std::int64_t rows = ceil_div(conv_.rows, m), columns = ceil_div(conv_.columns, m);
      for (const std::int64_t block_columns : block_sizes(columns))
        for (const std::int64_t block_rows : block_sizes(rows))
          for (const std::int64_t slices : block_sizes(conv_.step == 1 ? conv_.slices : 1))
            for (const std::int64_t images : block_sizes(conv_.images)) {
              const bool whole = block_rows == rows && block_columns == columns;
              if ((slices > 1 && !whole) || (images > 1 && (!whole || slices < conv_.slices)) ||
                  images * slices * block_rows * block_columns > kMostTiles)
                continue;
              filters({.m = m,
                       .images = images,
                       .slices = slices,
                       .rows = block_rows,
                       .columns = block_columns});
            }
    }
    std::ranges::stable_sort(candidates_, {}, &std::pair<WinogradSchedule, double>::second);
    return std::move(candidates_);
  }

  /// Estimated cost of the direct convolution.
  double direct() const {
    const double positions = real(conv_.images * conv_.slices * conv_.rows * conv_.columns);
    const double sums = positions * real(ceil_div(conv_.filters, lanes_) * lanes_);
    const double pixels =
        real(conv_.images * conv_.depth * conv_.height * conv_.width * conv_.channels);
    return 2 * sums * (9 * real(conv_.taps * conv_.channels) + kShortSums) / kDirect +
           kTransformed * (pixels + sums) + weights(9, 1);
  }

  /// Estimated cost of a schedule.
  double cost(const WinogradSchedule& plan) const {
    const double points = real((plan.m + 2) * (plan.m + 2));
    const std::int64_t tiles = plan.images * plan.slices * plan.rows * plan.columns;
    const std::int64_t filter_blocks = ceil_div(conv_.filters, plan.filters);
    const std::int64_t rounds = ceil_div(filter_blocks, plan.programs);
    const double channels = real(conv_.taps * conv_.channels), filters = real(plan.filters);
    // A few rows that are left over take nearly as long as a whole tile of registers.
    const std::int64_t rest = tiles % tile_.rows;
    const double rows =
        real(tiles - rest + (rest == 0 ? 0 : std::min<std::int64_t>(rest + 1, tile_.rows)));
    const std::int64_t tile_blocks = ceil_div(conv_.images, plan.images) *
                                     ceil_div(conv_.slices, plan.slices) *
                                     ceil_div(ceil_div(conv_.rows, plan.m), plan.rows) *
                                     ceil_div(ceil_div(conv_.columns, plan.m), plan.columns);
    const double pixels = points * real(tiles) * channels, sums = points * real(tiles) * filters;
    const double round = points * 2 * rows * filters * (channels + kShortSums) / kProducts +
                         kPacked * pixels + kTransformed * sums;
    const double program = kTransformed * pixels + real(rounds) * round;
    // On one core, and on all of them.
    const std::int64_t programs = plan.programs * tile_blocks;
    const double turns = real(programs + ceil_div(programs, machine_.cores) * machine_.cores) / 2 +
                         kWaiting * real(machine_.cores);
    return program * turns + weights(points, real(tile_blocks));
  }

 private:
  /// So many weights for each filter and channel, read so often.
  double weights(double each, double times) const {
    const double bytes = 4 * each * real(conv_.taps * conv_.channels * conv_.filters);
    const double beyond = bytes <= real(machine_.l3) * 3 / 4 ? kFar : kMemory;
    const double near = bytes <= real(machine_.l2) ? bytes
                        : keeps_part_in_l2()       ? real(machine_.l2)
                                                   : 0;
    return bytes * kRoom +
           times * (near * kNear + (bytes - near) * beyond * operations_per_byte(machine_));
  }

  /// Whether a part of what is larger than L2 stays there when it is read again and again: large
  /// L2 caches of x86-64 do not replace the least recently used line.
  bool keeps_part_in_l2() const { return machine_.architecture == machine::Architecture::X86_64; }

  void filters(WinogradSchedule plan) {
    for (std::int64_t count = 1; count <= ceil_div(conv_.filters, lanes_); count *= 2) {
      const std::int64_t size = ceil_div(conv_.filters, count);
      // The widest panel that leaves the fewest columns over.
      plan.filters = 0;
      for (int vectors = tile_.vectors; vectors > 0; --vectors) {
        const std::int64_t panel = vectors * lanes_, filled = ceil_div(size, panel) * panel;
        if (plan.filters != 0 && filled >= plan.filters) continue;
        plan.filters = filled;
        plan.panel = panel;
      }
      for (plan.programs = 1; plan.programs <= ceil_div(conv_.filters, plan.filters);
           plan.programs *= 2)
        consider(plan);
    }
  }

  void consider(const WinogradSchedule& plan) {
    // Pixels of several slices are transformed for every block of filters.
    if (conv_.taps > 1 && plan.programs < ceil_div(conv_.filters, plan.filters)) return;
    candidates_.emplace_back(plan, cost(plan));
  }

  const Convolution3x3& conv_;
  const machine::Machine& machine_;
  tile::cpu::RegisterTile tile_;
  std::int64_t lanes_;
  std::vector<std::pair<WinogradSchedule, double>> candidates_;
};

}  // namespace

std::optional<WinogradSchedule> plan_winograd(const Convolution3x3& convolution,
                                              const machine::Machine& machine) {
  Planner planner(convolution, machine);
  const double direct = planner.direct();
  const auto candidates = planner.run();
  if (candidates.empty() || candidates[0].second * kWorth > direct) return std::nullopt;
  return candidates[0].first;
}

std::vector<std::pair<WinogradSchedule, double>> winograd_candidates(
    const Convolution3x3& convolution, const machine::Machine& machine) {
  return Planner(convolution, machine).run();
}

double winograd_cost(const WinogradSchedule& schedule, const Convolution3x3& convolution,
                     const machine::Machine& machine) {
  return Planner(convolution, machine).cost(schedule);
}

Expected<Done> check(const WinogradSchedule& s, const Convolution3x3& conv,
                     const machine::Machine& machine) {
  if (s.m != 2 && s.m != 4) return illegal_schedule("Winograd's algorithm has tiles of 2 or 4");
  const std::int64_t rows = ceil_div(conv.rows, s.m), columns = ceil_div(conv.columns, s.m);
  const auto within = [](std::int64_t x, std::int64_t most) { return x >= 1 && x <= most; };
  if (!within(s.images, conv.images) || !within(s.slices, conv.step == 1 ? conv.slices : 1) ||
      !within(s.rows, rows) || !within(s.columns, columns))
    return illegal_schedule("a block of tiles is out of range");
  const bool whole = s.rows == rows && s.columns == columns;
  if ((s.slices > 1 && !whole) || (s.images > 1 && (!whole || s.slices < conv.slices)) ||
      s.images * s.slices * s.rows * s.columns > kMostTiles)
    return illegal_schedule("a block of tiles is not contiguous, or too large");
  const std::int64_t lanes = machine.vector_bytes / 4;
  const int vectors = tile::cpu::register_tile(tile::cpu::MatmulUnit::Lanes, machine).vectors;
  if (s.panel < 1 || s.panel % lanes != 0 || s.panel > lanes * vectors)
    return illegal_schedule("the panel width is not supported");
  if (s.filters % s.panel != 0 || !within(s.filters, ceil_div(conv.filters, s.panel) * s.panel))
    return illegal_schedule("a block of filters is not a number of panels");
  const std::int64_t blocks = ceil_div(conv.filters, s.filters);
  if (!within(s.programs, blocks) || (conv.taps > 1 && s.programs < blocks))
    return illegal_schedule("the number of programs does not fit the blocks of filters");
  return Done{};
}

}  // namespace tessera::lower
