#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/rules/rule.h"

namespace tessera::rules {

/// Output of a mutant at small sizes that satisfy its guard: a grid over two axes, those that the
/// region restricts first. Boxes are corrected: first row, end of rows, first column, end of
/// columns.
struct RegionGrid {
  std::size_t output = 0, row_axis = 0, column_axis = 0;
  std::int64_t rows = 0, columns = 0;
  std::vector<std::array<std::int64_t, 4>> boxes = {};
};

/// Grids of the outputs of a mutant; `rule-region` where no small sizes satisfy the guard.
Expected<std::vector<RegionGrid>> region_grids(const Rule& rule);

/// SVG drawing of the grids with the corrected boxes coloured.
Expected<std::string> region_picture(const Rule& rule);

}  // namespace tessera::rules
