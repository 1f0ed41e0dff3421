#include "tessera/rules/region_picture.h"

#include <algorithm>
#include <set>

#include "tessera/prove/sizes.h"
#include "tessera/support/markup.h"

namespace tessera::rules {
namespace {

constexpr std::int64_t kCell = 14, kMargin = 24, kMostCells = 64;

/// Small sizes that satisfy the guard and for which the borders are apart.
std::optional<SizeValues> sizes_for_picture(const Rule& rule) {
  std::set<std::string> of_outputs;
  for (const ValueId id : rule.source.outputs())
    for (const Dim& dim : rule.source.type(id).shape.value_or(Shape{}))
      dim.collect_symbols(of_outputs);
  for (std::int64_t base = 6; base <= 24; base += 3) {
    SizeValues sizes;
    for (const std::string& name : prove::symbols_of(rule.source).sizes)
      sizes[name] = of_outputs.contains(name) ? base : 1;  // windows are small
    if (const auto fits = holds(rule.guard, sizes); fits && *fits) return sizes;
  }
  return std::nullopt;
}

std::int64_t number(const Dim& dim, const SizeValues& sizes) {
  const Dim value = dim.substituted([&](std::string_view name) -> std::optional<Dim> {
    const auto it = sizes.find(name);
    return it == sizes.end() ? std::nullopt : std::optional(Dim(it->second));
  });
  return value.constant().value_or(1);
}

/// Rows and columns of the drawing: the axes that are restricted, else the last ones.
std::pair<std::size_t, std::size_t> drawn_axes(const Region& region, std::size_t output,
                                               std::size_t rank) {
  std::vector<std::size_t> order;
  for (std::size_t axis = rank; axis-- > 0;)
    if (std::ranges::any_of(region, [&](const Box& box) {
          return box.output == output && axis < box.axes.size() && box.axes[axis];
        }))
      order.push_back(axis);
  for (std::size_t axis = rank; axis-- > 0;)
    if (std::ranges::find(order, axis) == order.end()) order.push_back(axis);
  return {std::min(order[0], order[1]), std::max(order[0], order[1])};
}

}  // namespace

Expected<std::vector<RegionGrid>> region_grids(const Rule& rule) {
  const auto sizes = sizes_for_picture(rule);
  if (!sizes)
    return Diagnostic{.id = "rule-region",
                      .message = fmt::format("no small sizes satisfy {}", to_text(rule.guard))};
  std::vector<RegionGrid> grids;
  for (std::size_t output = 0; output < rule.source.outputs().size(); ++output) {
    Shape shape = rule.source.type(rule.source.outputs()[output]).shape.value_or(Shape{});
    const std::size_t padding = shape.size() < 2 ? 2 - shape.size() : 0;
    shape.insert(shape.begin(), padding, Dim(1));
    Region own;
    for (Box box : rule.mutant ? rule.mutant->wrong : Region{}) {
      box.axes.insert(box.axes.begin(), padding, std::nullopt);
      if (box.output == output && box.axes.size() == shape.size()) own.push_back(std::move(box));
    }
    const auto [rows, columns] = drawn_axes(own, output, shape.size());
    RegionGrid grid{.output = output,
                    .row_axis = rows - std::min(rows, padding),
                    .column_axis = columns - std::min(columns, padding),
                    .rows = std::min(number(shape[rows], *sizes), kMostCells),
                    .columns = std::min(number(shape[columns], *sizes), kMostCells)};
    const auto interval = [&](const std::optional<Interval>& of, std::int64_t extent) {
      const std::int64_t begin = of ? number(of->begin, *sizes) : 0;
      const std::int64_t end = of ? number(of->end, *sizes) : extent;
      return std::pair(std::clamp<std::int64_t>(begin, 0, extent),
                       std::clamp<std::int64_t>(end, 0, extent));
    };
    for (const Box& box : own) {
      const auto [top, bottom] = interval(box.axes[rows], grid.rows);
      const auto [left, right] = interval(box.axes[columns], grid.columns);
      if (top < bottom && left < right) grid.boxes.push_back({top, bottom, left, right});
    }
    grids.push_back(std::move(grid));
  }
  return grids;
}

Expected<std::string> region_picture(const Rule& rule) {
  TESSERA_TRY(const std::vector<RegionGrid> grids, region_grids(rule));
  std::string body;
  std::int64_t top = kMargin, width = 0;
  const auto rectangle = [&](const std::array<std::int64_t, 4>& box, const char* fill) {
    body += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='{}'/>\n",
                        kMargin + box[2] * kCell, top + box[0] * kCell, (box[3] - box[2]) * kCell,
                        (box[1] - box[0]) * kCell, fill);
  };
  for (const RegionGrid& grid : grids) {
    body += fmt::format("<text x='{}' y='{}'>output {}: axis {} down, axis {} across</text>\n",
                        kMargin, top, grid.output, grid.row_axis, grid.column_axis);
    top += kCell / 2;
    rectangle({0, grid.rows, 0, grid.columns}, "#cfe3d4");
    for (const auto& box : grid.boxes) rectangle(box, "#e4572e");
    const std::int64_t right = kMargin + grid.columns * kCell, bottom = top + grid.rows * kCell;
    for (std::int64_t row = 0; row <= grid.rows; ++row)
      body += fmt::format("<path d='M{0} {1}H{2}' stroke='#999'/>\n", kMargin, top + row * kCell,
                          right);
    for (std::int64_t column = 0; column <= grid.columns; ++column)
      body += fmt::format("<path d='M{0} {1}V{2}' stroke='#999'/>\n", kMargin + column * kCell, top,
                          bottom);
    top = bottom + kMargin;
    width = std::max(width, grid.columns * kCell);
  }
  for (const Box& box : rule.mutant ? rule.mutant->wrong : Region{}) {
    body += fmt::format("<text x='{}' y='{}'>corrected: {}</text>\n", kMargin, top,
                        markup_text(in_words(box)));
    top += kCell + 4;
  }
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{}' height='{}' font-family='sans-serif' "
      "font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n{}</svg>\n",
      std::max<std::int64_t>(width + 2 * kMargin, 520), top + kMargin, body);
}

}  // namespace tessera::rules
