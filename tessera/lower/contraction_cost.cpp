#include "tessera/lower/contraction_cost.h"

#include <algorithm>
#include <functional>
#include <set>

#include "tessera/expr/function.h"
#include "tessera/expr/walk.h"

namespace tessera::lower {
bool calls_transcendental(const Scalar& value) {
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

ContractionCost::ContractionCost(const Contraction& contraction, const tile::cpu::Panels& panels,
                                 const machine::Machine& machine)
    : c_(contraction), panels_(panels), machine_(machine) {
  sum_ = static_cast<double>(count(c_.sums));
  lanes_ = machine.vector_bytes / 4;
  register_rows_ = tile::cpu::register_rows(panels.columns, machine);
  // Instructions for bytes multiply a group of the sum at once.
  if (panels.dtype == DType::I8) {
    at_once_ = static_cast<double>(panels.k_group);
    size_ = 0.25;
  }
  has_transcendental_ = calls_transcendental(c_.stage->output.value);
}

double ContractionCost::operator()(const ContractionTiles& tiles) const {
  Sizes rows = {{1, count(c_.batch)}};
  for (std::size_t i = 0; i < c_.rows.size(); ++i)
    rows = cut(rows, c_.rows[i].extent, tiles.rows[i]);
  std::vector<double> busy(static_cast<std::size_t>(std::max(machine_.cores, 1)));
  const bool fused = fuses_epilogue(tiles), in_place = reads_in_place(tiles);
  for (const auto& [n, columns] : cut({{1, 1}}, c_.column.extent, tiles.columns))
    for (const auto& [m, times] : rows) {
      // A copy of a is whole, whatever there is of it.
      const double cycles = program(in_place ? m : tiles.row_count(), n, tiles, {in_place, fused});
      const std::int64_t programs = columns * times;
      const auto cores = static_cast<std::int64_t>(busy.size());
      for (double& core : busy) core += static_cast<double>(programs / cores) * cycles;
      for (std::int64_t i = 0; i < programs % cores; ++i) *std::ranges::min_element(busy) += cycles;
    }
  return std::ranges::max(busy);
}

ContractionCost::Sizes ContractionCost::cut(const Sizes& sizes, std::int64_t extent,
                                            std::int64_t tile) {
  Sizes result;
  for (const auto& [size, times] : sizes) result.emplace_back(size * tile, times * (extent / tile));
  if (extent % tile != 0)
    for (const auto& [size, times] : sizes) result.emplace_back(size * (extent % tile), times);
  return result;
}

bool ContractionCost::reads_in_place(const ContractionTiles& tiles) const {
  if (!c_.a.is_plain() || panels_.dtype != DType::F32 || tiles.sums.size() != 1) return false;
  const AxisGroups rows = row_groups(c_, tiles.rows);
  return std::ranges::count_if(rows, [](const AxisGroup& group) { return group.tile > 1; }) <= 1;
}

bool ContractionCost::fuses_epilogue(const ContractionTiles& tiles) const {
  if (has_transcendental_) return false;
  for (std::size_t i = 0; i < c_.rows.size(); ++i)
    if (c_.rows[i].extent % tiles.rows[i] != 0) return false;
  return c_.column.extent % tiles.columns == 0 && tiles.sum_count() == count(c_.sums) &&
         tiles.sum_count() * (panels_.columns + register_rows_) * byte_width(panels_.dtype) <=
             machine_.l1d * 7 / 8;
}

double ContractionCost::program(std::int64_t m, std::int64_t n, const ContractionTiles& tiles,
                                const ProgramTraits& traits) const {
  const auto rows = static_cast<double>(m), columns = static_cast<double>(n);
  const auto vectors = static_cast<double>(ceil_div(n, lanes_));
  // A row beside the last whole register tile costs more than its share.
  const double work = sum_ / at_once_ * vectors / 4 *
                      (static_cast<double>(m / register_rows_ * register_rows_) +
                       1.4 * static_cast<double>(m % register_rows_));
  const double left = rows * sum_ * (traits.in_place ? 0.8 : 1.2) * size_;
  // Every tile of rows reads all of b again, from as near as it fits.
  const double all_of_b = sum_ * static_cast<double>(c_.column.extent) * 4 * size_;
  const double right = columns * sum_ * size_ *
                       (all_of_b > static_cast<double>(machine_.l3) / 2 ? 0.8
                        : all_of_b > static_cast<double>(machine_.l2)   ? 0.3
                                                                        : 0.1);
  // Every program packs its part of b; across memory, element by element.
  const double packing = c_.packs_b_across() ? 4 * columns * sum_ : 0;
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
  const double sums = rows * vectors * (traits.fused ? finished : kept);
  const double calls =
      15 * rounds * static_cast<double>(ceil_div(m, register_rows_) * ceil_div(n, panels_.columns));
  return work + left + right + packing + sums + calls + 1000;
}

}  // namespace tessera::lower
