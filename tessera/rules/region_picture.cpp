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

Expected<std::string> region_picture(const Rule& rule) {
  const auto sizes = sizes_for_picture(rule);
  if (!sizes)
    return Diagnostic{.id = "rule-region",
                      .message = fmt::format("no small sizes satisfy {}", to_text(rule.guard))};
  const Region region = rule.mutant ? rule.mutant->wrong : Region{};
  std::string body;
  std::int64_t top = kMargin, width = 0;
  for (std::size_t output = 0; output < rule.source.outputs().size(); ++output) {
    Shape shape = rule.source.type(rule.source.outputs()[output]).shape.value_or(Shape{});
    const std::size_t padding = shape.size() < 2 ? 2 - shape.size() : 0;
    shape.insert(shape.begin(), padding, Dim(1));
    Region own;
    for (Box box : region) {
      if (box.output != output) continue;
      box.axes.insert(box.axes.begin(), padding, std::nullopt);
      own.push_back(std::move(box));
    }
    const auto [rows, columns] = drawn_axes(own, output, shape.size());
    const std::int64_t m = std::min(number(shape[rows], *sizes), kMostCells);
    const std::int64_t n = std::min(number(shape[columns], *sizes), kMostCells);
    body += fmt::format("<text x='{}' y='{}'>output {}: axis {} down, axis {} across</text>\n",
                        kMargin, top, output, rows - std::min(rows, padding),
                        columns - std::min(columns, padding));
    top += kCell / 2;
    const auto inside = [&](const Box& box, std::size_t axis, std::int64_t at) {
      return !box.axes[axis] || (at >= number(box.axes[axis]->begin, *sizes) &&
                                 at < number(box.axes[axis]->end, *sizes));
    };
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t column = 0; column < n; ++column) {
        const bool wrong = std::ranges::any_of(own, [&](const Box& box) {
          return box.axes.size() == shape.size() && inside(box, rows, row) &&
                 inside(box, columns, column);
        });
        body +=
            fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='{}' stroke='#999'/>\n",
                        kMargin + column * kCell, top + row * kCell, kCell, kCell,
                        wrong ? "#e4572e" : "#cfe3d4");
      }
    top += m * kCell + kMargin;
    width = std::max(width, n * kCell);
  }
  for (const Box& box : region) {
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
