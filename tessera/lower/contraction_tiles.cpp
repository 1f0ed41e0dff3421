#include <algorithm>
#include <functional>
#include <limits>

#include "tessera/lower/contraction_cost.h"
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

/// Tile sizes of the rows for a number of rows in total, innermost axes first: nearly equal tiles,
/// or tiles that divide the axes.
std::vector<std::vector<std::int64_t>> row_tiles(const Contraction& c) {
  std::vector<std::vector<std::int64_t>> candidates;
  for (const std::int64_t target : {1, 8, 16, 32, 48, 64, 96, 128, 160, 192, 256, 384}) {
    for (const auto part_of : {even_part, largest_divisor}) {
      std::vector<std::int64_t> parts(c.rows.size());
      std::int64_t rest = target;
      for (std::size_t i = c.rows.size(); i-- > 0;) {
        parts[i] = part_of(c.rows[i].extent, rest);
        rest /= parts[i];
      }
      if (std::ranges::find(candidates, parts) == candidates.end())
        candidates.push_back(std::move(parts));
    }
  }
  return candidates;
}

/// Grid order that iterates most often over the smaller operand.
bool prefers_columns_outer(const Contraction& c, const ContractionTiles& tiles) {
  const double rows = static_cast<double>(count(c.rows)),
               columns = static_cast<double>(c.column.extent);
  return rows / static_cast<double>(tiles.row_count()) * columns >
         columns / static_cast<double>(tiles.columns) * rows;
}

/// Visits tile sizes for one layout of panels. `k_scales` are factors of the default k-step where
/// operand a is copied.
template <class Visit>
void for_each_tiles(const Contraction& c, const ContractionCost& cost,
                    const tile::cpu::Panels& panels, const machine::Machine& machine,
                    const std::vector<double>& k_scales, Visit&& visit) {
  const std::int64_t panel = panels.columns, all = count(c.sums);
  const AxisGroups sums = merged_sums(c);
  // Windows of an image as operand b are copied for each k-step; where a few rows read them once,
  // they stay in the first-level cache.
  const bool streams_b = !c.known_b && sums.size() > 1 && count(c.rows) <= cost.register_rows();
  const std::int64_t copied_b =
      streams_b
          ? std::max<std::int64_t>(machine.l1d / 2 / 4 / std::min(c.column.extent, 4 * panel), 1)
          : all;
  // Columns that share an axis of the result with other index variables are not cut.
  const bool whole_columns = c.is_merged(c.column);
  for (const std::vector<std::int64_t>& candidate : row_tiles(c)) {
    ContractionTiles tiles{.rows = candidate, .sums = sums};
    const bool in_place = cost.reads_in_place(tiles);
    const std::int64_t budget = machine.l2 / (panels.dtype == DType::I8 ? 4 : 16);
    std::vector<std::int64_t> steps;
    for (const double scale : k_scales) {
      const std::int64_t most =
          in_place ? all
                   : std::max<std::int64_t>(
                         static_cast<std::int64_t>(static_cast<double>(budget) * scale) /
                             tiles.row_count(),
                         16);
      tiles.sums = sums;
      take_sums(tiles.sums, std::min(most, copied_b), panels.k_group);
      if (std::ranges::find(steps, tiles.sum_count()) != steps.end()) continue;
      steps.push_back(tiles.sum_count());
      std::int64_t last = 0;
      for (std::int64_t parts = 1; parts <= ceil_div(c.column.extent, panel);
           parts += 1 + parts / 8) {
        tiles.columns =
            std::min(c.column.extent, ceil_div(ceil_div(c.column.extent, parts), panel) * panel);
        if (whole_columns && tiles.columns < c.column.extent) break;
        if (tiles.columns == last) continue;
        last = tiles.columns;
        const std::int64_t wide = tiles.columns + panel;  // up to the end of its last panel
        if (tiles.sum_count() * wide > tile::kMostElements) continue;
        visit(tiles);
      }
    }
  }
}

tile::cpu::Panels default_panels(const Contraction& c, const GroupOptions& options,
                                 const machine::Machine& machine) {
  return tile::cpu::panels_for(c.bytes ? DType::I8 : options.contraction_dtype, count(c.rows),
                               machine);
}

/// Whether the k-step is whole groups of the panels, or the whole reduction.
bool fits_panels(const Contraction& c, const ContractionTiling& tiling) {
  const std::int64_t sums = tiling.tiles.sum_count();
  return sums % tiling.panels.k_group == 0 || sums == count(c.sums);
}

/// Panels whose groups of the reduction divide every k-step.
tile::cpu::Panels plain_panels(const Contraction& c, tile::cpu::Panels panels,
                               const machine::Machine& machine) {
  if (!c.bytes) return tile::cpu::panels_for(DType::F32, count(c.rows), machine);
  panels.k_group = 1;
  return panels;
}

ContractionTiles best_tiles(const Contraction& c, const tile::cpu::Panels& panels,
                            const machine::Machine& machine) {
  const ContractionCost cost(c, panels, machine);
  ContractionTiles best;
  double least = std::numeric_limits<double>::infinity();
  for_each_tiles(c, cost, panels, machine, {1}, [&](const ContractionTiles& tiles) {
    const double cycles = cost(tiles);
    if (cycles >= least) return;
    least = cycles;
    best = tiles;
  });
  best.columns_outer = prefers_columns_outer(c, best);
  return best;
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

ContractionTiling default_tiling(const Contraction& c, const GroupOptions& options,
                                 const machine::Machine& machine) {
  ContractionTiling tiling{.panels = default_panels(c, options, machine)};
  tiling.tiles = best_tiles(c, tiling.panels, machine);
  if (fits_panels(c, tiling)) return tiling;
  tiling.panels = plain_panels(c, tiling.panels, machine);
  tiling.tiles = best_tiles(c, tiling.panels, machine);
  return tiling;
}

ContractionSchedule schedule_of(const ContractionTiling& tiling) {
  ContractionSchedule schedule{.rows = tiling.tiles.rows,
                               .columns = tiling.tiles.columns,
                               .panel = tiling.panels.columns,
                               .columns_outer = tiling.tiles.columns_outer};
  for (const AxisGroup& group : tiling.tiles.sums) schedule.sums.push_back(group.tile);
  return schedule;
}

Expected<ContractionTiling> tiling_of(const Contraction& c, const ContractionSchedule& schedule,
                                      const GroupOptions& options,
                                      const machine::Machine& machine) {
  ContractionTiling tiling{.panels = default_panels(c, options, machine)};
  tiling.tiles = {.rows = schedule.rows,
                  .columns = schedule.columns,
                  .sums = merged_sums(c),
                  .columns_outer = schedule.columns_outer};
  ContractionTiles& tiles = tiling.tiles;
  if (tiles.rows.size() != c.rows.size() || schedule.sums.size() != tiles.sums.size())
    return illegal_schedule("the contraction has other axes");
  for (std::size_t i = 0; i < c.rows.size(); ++i)
    if (tiles.rows[i] < 1 || tiles.rows[i] > c.rows[i].extent)
      return illegal_schedule("a tile of rows is out of range");
  // Panels store the reduction in order: outer axes advance one by one while an inner one is cut.
  bool is_cut = false;
  for (std::size_t i = tiles.sums.size(); i-- > 0;) {
    AxisGroup& group = tiles.sums[i];
    group.tile = schedule.sums[i];
    if (group.tile < 1 || group.extent() % group.tile != 0 || (is_cut && group.tile != 1))
      return illegal_schedule("a k-step does not divide the reduction");
    is_cut = is_cut || group.tile < group.extent();
  }
  if (!fits_panels(c, tiling)) tiling.panels = plain_panels(c, tiling.panels, machine);
  const std::vector<std::int64_t> widths = panel_widths(c, tiling.panels, machine);
  if (std::ranges::find(widths, schedule.panel) == widths.end())
    return illegal_schedule("the panel width is not supported");
  tiling.panels.columns = schedule.panel;
  const bool is_whole = tiles.columns == c.column.extent;
  if (tiles.columns < 1 || tiles.columns > c.column.extent ||
      (!is_whole && (tiles.columns % schedule.panel != 0 || c.is_merged(c.column))))
    return illegal_schedule("a tile of columns is not a multiple of the panel width");
  if (tiles.sum_count() * (tiles.columns + schedule.panel) > tile::kMostElements)
    return illegal_schedule("the tile of weights is too large");
  return tiling;
}

std::vector<std::int64_t> panel_widths(const Contraction& c, const tile::cpu::Panels& panels,
                                       const machine::Machine& machine) {
  // Panels that are packed at run time have the default width, and so have narrow types.
  if (!c.known_b || c.bytes || panels.dtype != DType::F32 || count(c.rows) == 1)
    return {panels.columns};
  std::vector<std::int64_t> widths;
  const std::int64_t lanes = machine.vector_bytes / 4;
  constexpr int kLeastRows = 4;
  for (std::int64_t columns = lanes; columns <= 2 * panels.columns; columns += lanes)
    if (columns <= panels.columns || tile::cpu::register_rows(columns, machine) >= kLeastRows)
      widths.push_back(columns);
  return widths;
}

std::vector<ContractionCandidate> contraction_candidates(const Contraction& c,
                                                         const GroupOptions& options,
                                                         const machine::Machine& machine) {
  const tile::cpu::Panels usual = default_panels(c, options, machine);
  std::vector<ContractionCandidate> all;
  for (const std::int64_t width : panel_widths(c, usual, machine)) {
    tile::cpu::Panels panels = usual;
    panels.columns = width;
    const ContractionCost cost(c, panels, machine);
    const auto add = [&](const ContractionTiles& tiles) {
      ContractionTiling tiling{panels, tiles};
      if (!fits_panels(c, tiling)) return;
      tiling.tiles.columns_outer = prefers_columns_outer(c, tiles);
      const double cycles = cost(tiles);
      all.push_back({tiling, cycles});
      if (ceil_div(c.column.extent, tiles.columns) == 1 || tiles.row_count() == count(c.rows))
        return;  // one order is the other
      tiling.tiles.columns_outer = !tiling.tiles.columns_outer;
      all.push_back({tiling, cycles});
    };
    for_each_tiles(c, cost, panels, machine, {0.25, 0.5, 1, 2, 4}, add);
  }
  std::ranges::stable_sort(all, {}, &ContractionCandidate::cycles);
  return all;
}

}  // namespace tessera::lower
