#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "tessera/lower/contraction.h"

#include "tessera/expr/function.h"
#include "tessera/expr/walk.h"
#include "tessera/tile/verify.h"

namespace tessera::lower {
namespace {

/// Neighbours that merge are one, as far as `whole` says of the inner one.
template <class Whole>
AxisGroups grouped(const Contraction& c, const IndexAxes& axes, Whole&& whole) {
  AxisGroups groups;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i > 0 && c.merges(axes[i - 1], axes[i]) && whole(i))
      groups.back().axes.push_back(axes[i]);
    else
      groups.push_back({.axes = {axes[i]}});
  }
  return groups;
}

/// Tile size of at most `most` that divides the extent into nearly equal tiles.
std::int64_t even_part(std::int64_t extent, std::int64_t most) {
  return most < 1 ? 1 : ceil_div(extent, ceil_div(extent, most));
}

/// Largest tile size of at most `most` that divides the extent.
std::int64_t whole_part(std::int64_t extent, std::int64_t most) {
  std::int64_t part = std::clamp<std::int64_t>(most, 1, extent);
  while (extent % part != 0) --part;
  return part;
}

/// Whether an expression has a transcendental function, whose constants compete with accumulators
/// for registers.
bool has_transcendental(const Scalar& value) {
  std::set<const void*> seen;
  const std::function<bool(const Scalar&)> walk = [&](const Scalar& part) {
    if (!seen.insert(part.id()).second) return false;
    const auto* call = std::get_if<node::Apply>(&part.node());
    bool found = call != nullptr && info_of(call->fn).is_transcendental;
    for_each_part(part, [&](const Scalar& inner) { found = found || walk(inner); });
    return found;
  };
  return walk(value);
}

/// Cost model of tile sizes, in approximate cycles.
class Cost {
 public:
  Cost(const Contraction& c, const tile::cpu::Panels& panels, const machine::Machine& machine)
      : c_(c), panel_(panels.columns), width_(byte_width(panels.dtype)), machine_(machine) {
    sum_ = static_cast<double>(count(c.sums));
    lanes_ = machine.vector_bytes / 4;
    mr_ = tile::cpu::register_tile(tile::cpu::MatmulUnit::Lanes, machine).rows;
    // Instructions for bytes multiply a group of the sum at once.
    if (panels.dtype == DType::I8) {
      at_once_ = static_cast<double>(panels.k_group);
      size_ = 0.25;
    }
    has_transcendental_ = has_transcendental(c.stage->output.value);
  }

  /// Until the last core is done, where each takes the next program when it has done one.
  double operator()(const ContractionTiles& tiles, bool in_place) const {
    Sizes rows = {{1, count(c_.batch)}};
    for (std::size_t i = 0; i < c_.rows.size(); ++i)
      rows = cut(rows, c_.rows[i].extent, tiles.rows[i]);
    std::vector<double> busy(static_cast<std::size_t>(std::max(machine_.cores, 1)));
    const bool finished = finishes(tiles);
    for (const auto& [n, columns] : cut({{1, 1}}, c_.column.extent, tiles.columns))
      for (const auto& [m, times] : rows) {
        // A copy of a is whole, whatever there is of it.
        const double cycles =
            program(in_place ? m : tiles.row_count(), n, tiles, {in_place, finished});
        const std::int64_t programs = columns * times;
        const auto cores = static_cast<std::int64_t>(busy.size());
        for (double& core : busy) core += static_cast<double>(programs / cores) * cycles;
        for (std::int64_t i = 0; i < programs % cores; ++i)
          *std::ranges::min_element(busy) += cycles;
      }
    return std::ranges::max(busy);
  }

 private:
  /// Sizes of tiles, and how many there are of each.
  using Sizes = std::vector<std::pair<std::int64_t, std::int64_t>>;

  static Sizes cut(const Sizes& sizes, std::int64_t extent, std::int64_t tile) {
    Sizes result;
    for (const auto& [size, times] : sizes)
      result.emplace_back(size * tile, times * (extent / tile));
    if (extent % tile != 0)
      for (const auto& [size, times] : sizes) result.emplace_back(size * (extent % tile), times);
    return result;
  }

  /// Whether sums are finished while they are in registers: all tiles are whole, and so is the sum.
  bool finishes(const ContractionTiles& tiles) const {
    if (has_transcendental_) return false;
    for (std::size_t i = 0; i < c_.rows.size(); ++i)
      if (c_.rows[i].extent % tiles.rows[i] != 0) return false;
    return c_.column.extent % tiles.columns == 0 && tiles.sum_count() == count(c_.sums) &&
           tiles.sum_count() * (panel_ + mr_) * width_ <= machine_.l1d * 7 / 8;
  }

  struct How {
    bool in_place, finished;
  };
  double program(std::int64_t m, std::int64_t n, const ContractionTiles& tiles,
                 const How& how) const {
    const auto rows = static_cast<double>(m), columns = static_cast<double>(n);
    const auto vectors = static_cast<double>(ceil_div(n, lanes_));
    // A row beside the last whole register tile costs more than its share.
    const double work = sum_ / at_once_ * vectors / 4 *
                        (static_cast<double>(m / mr_ * mr_) + 1.4 * static_cast<double>(m % mr_));
    const double left = rows * sum_ * (how.in_place ? 0.8 : 1.2) * size_;
    // Every tile of rows reads all of b again, from as near as it fits.
    const double all_of_b = sum_ * static_cast<double>(c_.column.extent) * 4 * size_;
    const double right = columns * sum_ * size_ *
                         (all_of_b > static_cast<double>(machine_.l3) / 2 ? 0.8
                          : all_of_b > static_cast<double>(machine_.l2)   ? 0.3
                                                                          : 0.1);
    const double rounds =
        std::max(1.0, sum_ / std::min<double>(512, static_cast<double>(tiles.sum_count())));
    // Sums are stored, and read again by what follows.
    const bool near = rows * columns * 4 < 0.7 * static_cast<double>(machine_.l1d);
    const bool fits = rows * (columns + 512) * 4 < 0.7 * static_cast<double>(machine_.l2);
    // Or they go from registers to the result, of which lines that are left in parts come again:
    // long sums hide that, and rows that are done at once leave none.
    const bool at_once = sum_ * columns * 4 <= static_cast<double>(machine_.l1d) / 2;
    const double finished = 1.2 + (near || at_once ? 0 : 8 / sum_);
    const double kept = (2 * rounds + 4) * (near ? 0.4 : fits ? 0.5 : 8);
    const double sums = rows * vectors * (how.finished ? finished : kept);
    const double calls = 15 * rounds * static_cast<double>(ceil_div(m, mr_) * ceil_div(n, panel_));
    return work + left + right + sums + calls + 1000;
  }

  const Contraction& c_;
  std::int64_t panel_, width_;
  const machine::Machine& machine_;
  double sum_ = 0;
  std::int64_t lanes_ = 4, mr_ = 4;
  double at_once_ = 1, size_ = 1;  // of elements, where 4 bytes are 1
  bool has_transcendental_ = false;
};

/// At most so much of the sum, in parts of one size: a multiple of `unit` if that can be.
void take_sums(AxisGroups& groups, std::int64_t most, std::int64_t unit) {
  std::int64_t taken = 1;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    const std::int64_t extent = group->extent();
    const auto fits = [&](std::int64_t tile, std::int64_t multiple) {
      return extent % tile == 0 && taken * tile % multiple == 0;
    };
    for (const std::int64_t multiple : {unit, std::int64_t{1}}) {
      group->tile = std::min(extent, std::max<std::int64_t>(most / taken, 1));
      while (group->tile > 0 && !fits(group->tile, multiple)) --group->tile;
      if (group->tile > 0) break;
    }
    taken *= group->tile;
    if (group->tile < extent) most = 1;
  }
}

}  // namespace

std::int64_t ContractionTiles::row_count() const {
  std::int64_t all = 1;
  for (const std::int64_t tile : rows) all *= tile;
  return all;
}

std::int64_t ContractionTiles::sum_count() const {
  std::int64_t all = 1;
  for (const AxisGroup& group : sums) all *= group.tile;
  return all;
}

AxisGroups row_groups(const Contraction& c, const std::vector<std::int64_t>& tiles) {
  AxisGroups groups =
      grouped(c, c.rows, [&](std::size_t i) { return tiles[i] == c.rows[i].extent; });
  std::size_t at = 0;
  for (AxisGroup& group : groups)
    for (std::size_t i = 0; i < group.axes.size(); ++i) group.tile *= tiles[at++];
  return groups;
}

AxisGroups merged_sums(const Contraction& c) {
  return grouped(c, c.sums, [](std::size_t) { return true; });
}

ContractionTiles choose_tiles(const Contraction& c, const tile::cpu::Panels& panels,
                              const machine::Machine& machine) {
  const std::int64_t panel = panels.columns;
  const Cost cost(c, panels, machine);
  const AxisGroups sums = merged_sums(c);
  ContractionTiles best;
  double least = std::numeric_limits<double>::infinity();
  // Columns that share an axis of the result with other index variables are not cut.
  const bool whole_columns = c.is_merged(c.column);
  const auto parts_of_rows = [&](std::int64_t target, auto&& part_of) {
    std::vector<std::int64_t> parts(c.rows.size());
    for (std::size_t i = c.rows.size(); i-- > 0;) {
      parts[i] = part_of(c.rows[i].extent, target);
      target /= parts[i];
    }
    return parts;
  };
  std::vector<std::vector<std::int64_t>> candidates;
  for (const std::int64_t target : {1, 8, 16, 32, 48, 64, 96, 128, 160, 192, 256, 384}) {
    for (const auto part_of : {even_part, whole_part})
      if (auto parts = parts_of_rows(target, part_of);
          std::ranges::find(candidates, parts) == candidates.end())
        candidates.push_back(std::move(parts));
  }
  for (const std::vector<std::int64_t>& candidate : candidates) {
    ContractionTiles tiles{.rows = candidate};
    const AxisGroups rows = row_groups(c, tiles.rows);
    const bool in_place =
        c.a.is_plain() && panels.dtype == DType::F32 && sums.size() == 1 &&
        std::ranges::count_if(rows, [](const AxisGroup& group) { return group.tile > 1; }) <= 1;
    tiles.sums = sums;
    const std::int64_t all = count(c.sums);
    const std::int64_t budget = machine.l2 / (panels.dtype == DType::I8 ? 4 : 16);
    take_sums(tiles.sums, in_place ? all : std::max<std::int64_t>(budget / tiles.row_count(), 16),
              panels.k_group);
    for (std::int64_t parts = 1; parts <= ceil_div(c.column.extent, panel);
         parts += 1 + parts / 8) {
      tiles.columns =
          std::min(c.column.extent, ceil_div(ceil_div(c.column.extent, parts), panel) * panel);
      if (whole_columns && tiles.columns < c.column.extent) break;
      const std::int64_t wide = tiles.columns + panel;  // up to the end of its last panel
      if (tiles.sum_count() * wide > tile::kMostElements) continue;
      const double cycles = cost(tiles, in_place);
      if (cycles >= least) continue;
      least = cycles;
      best = tiles;
    }
  }
  // What is run through again and again should be what is small.
  const double rows = static_cast<double>(count(c.rows)),
               columns = static_cast<double>(c.column.extent);
  best.columns_outer = rows / static_cast<double>(best.row_count()) * columns >
                       columns / static_cast<double>(best.columns) * rows;
  return best;
}

}  // namespace tessera::lower
