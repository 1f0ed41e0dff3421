#include <algorithm>

#include "tessera/lower/winograd.h"
#include "tessera/tile/cpu/panels.h"

namespace tessera::lower {
namespace {

/// Costs are in multiplications and additions at the machine's best rate. The numbers were measured
/// on a Neoverse V1; what they stand for is much the same wherever vectors are added and
/// multiplied.
///
/// Products of matrices come near the best rate, the more the longer their sums are; a convolution
/// that is one product, gathered as it goes, a little less. A transform takes time for every
/// element that it is given or leaves behind, mostly that of loads and stores.
constexpr double kProducts = 0.92, kDirect = 0.85, kTransform = 35, kShortSums = 8;
/// Bytes of weights that come from the third cache or from memory, and of tiles that do not stay in
/// the second.
constexpr double kFromCache = 3, kFromMemory = 10, kRead = 1.5;
/// To be worth its trouble it is faster by a tenth, and saves so much for every byte more of
/// weights.
constexpr double kWorth = 1.1, kPerByte = 10;
constexpr std::int64_t kMostTiles = 128;

std::int64_t blocks(std::int64_t extent, std::int64_t size) {
  return (extent + size - 1) / size;
}
double real(std::int64_t x) {
  return static_cast<double>(x);
}

/// Blocks of nearly equal size, for every number of them that makes a difference.
std::vector<std::int64_t> block_sizes(std::int64_t extent) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t count = 1; count <= extent; ++count)
    if (const std::int64_t size = blocks(extent, count); sizes.empty() || size != sizes.back())
      sizes.push_back(size);
  return sizes;
}

class Planner {
 public:
  Planner(const Convolution3x3& conv, const machine::Machine& machine)
      : conv_(conv),
        machine_(machine),
        tile_(tile::cpu::register_tile(tile::cpu::Products::Lanes, machine)),
        lanes_(machine.vector_bytes / 4) {}

  std::optional<WinogradPlan> run() {
    for (const int m : {4, 2}) {
      const std::int64_t rows = blocks(conv_.rows, m), columns = blocks(conv_.columns, m);
      for (const std::int64_t block_rows : block_sizes(rows))
        for (const std::int64_t block_columns : block_sizes(columns))
          for (const std::int64_t images : block_sizes(conv_.images)) {
            const bool whole = block_rows == rows && block_columns == columns;
            if ((images > 1 && !whole) || images * block_rows * block_columns > kMostTiles)
              continue;
            filters({.m = m, .images = images, .rows = block_rows, .columns = block_columns});
          }
    }
    const double direct = 2 * real(conv_.images * conv_.rows * conv_.columns * conv_.filters) *
                              (9 * real(conv_.channels) + kShortSums) / kDirect +
                          weights(9);
    const double more = bytes(real((best_.m + 2) * (best_.m + 2) - 9));
    if (best_.filters == 0 || best_cost_ * kWorth > direct || direct - best_cost_ < kPerByte * more)
      return std::nullopt;
    return best_;
  }

 private:
  /// Of so many weights for each filter and channel.
  double bytes(double each) const { return 4 * each * real(conv_.channels * conv_.filters); }
  /// The cost of reading them once.
  double weights(double each) const {
    const double all = bytes(each);
    if (all <= real(machine_.l2) / 2) return 0;
    return all * (all <= real(machine_.l3) / 2 ? kFromCache : kFromMemory);
  }

  void filters(WinogradPlan plan) {
    for (std::int64_t count = 1; count <= blocks(conv_.filters, lanes_); count *= 2) {
      const std::int64_t size = blocks(conv_.filters, count);
      // The widest panel that leaves the fewest columns over.
      plan.filters = 0;
      for (int vectors = tile_.vectors; vectors > 0; --vectors) {
        const std::int64_t panel = vectors * lanes_, filled = blocks(size, panel) * panel;
        if (plan.filters != 0 && filled >= plan.filters) continue;
        plan.filters = filled;
        plan.panel = panel;
      }
      for (plan.programs = 1; plan.programs <= blocks(conv_.filters, plan.filters);
           plan.programs *= 2)
        consider(plan);
    }
  }

  void consider(const WinogradPlan& plan) {
    const double points = real((plan.m + 2) * (plan.m + 2));
    const std::int64_t tiles = plan.images * plan.rows * plan.columns;
    const std::int64_t filter_blocks = blocks(conv_.filters, plan.filters);
    const std::int64_t rounds = blocks(filter_blocks, plan.programs);
    const double channels = real(conv_.channels), filters = real(plan.filters);
    // A few rows that are left over take nearly as long as a whole tile of registers.
    const std::int64_t rest = tiles % tile_.rows;
    const double rows =
        real(tiles - rest + (rest == 0 ? 0 : std::min<std::int64_t>(rest + 1, tile_.rows)));
    const double pixels_bytes = 4 * points * real(tiles) * channels;
    const double sums_bytes = 4 * points * real(tiles) * filters;
    double round = points * 2 * rows * filters * (channels + kShortSums) / kProducts +
                   kTransform * points * real(tiles) * filters +
                   weights(points) / real(filter_blocks);
    if (pixels_bytes > real(machine_.l2) * 3 / 4) round += kRead * pixels_bytes;
    if (sums_bytes > real(machine_.l2) / 2) round += 2 * kRead * sums_bytes;
    const double program = kTransform * points * real(tiles) * channels + real(rounds) * round;
    const std::int64_t programs = plan.programs * blocks(conv_.images, plan.images) *
                                  blocks(blocks(conv_.rows, plan.m), plan.rows) *
                                  blocks(blocks(conv_.columns, plan.m), plan.columns);
    // On one core, and on all of them.
    const double cost =
        program * real(programs + blocks(programs, machine_.cores) * machine_.cores) / 2;
    if (best_.filters != 0 && cost >= best_cost_) return;
    best_ = plan;
    best_cost_ = cost;
  }

  const Convolution3x3& conv_;
  const machine::Machine& machine_;
  tile::cpu::RegisterTile tile_;
  std::int64_t lanes_;
  WinogradPlan best_ = {};
  double best_cost_ = 0;
};

}  // namespace

std::optional<WinogradPlan> plan_winograd(const Convolution3x3& convolution,
                                          const machine::Machine& machine) {
  return Planner(convolution, machine).run();
}

}  // namespace tessera::lower
