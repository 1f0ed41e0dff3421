#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/tile/kernel.h"
#include "tessera/tile/schedule.h"

namespace tessera::lower {

/// Schedule of a contraction on a CPU: tile sizes and weight packing.
struct ContractionSchedule {
  std::vector<std::int64_t> rows = {};  // output tile along each axis of rows
  std::int64_t columns = 1;             // output tile along the columns
  std::vector<std::int64_t> sums = {};  // k-step along each group of fused reduction axes
  std::int64_t panel = 0;               // columns of a panel of the packed weights
  bool columns_outer = false;           // grid order: all rows before the next columns
  bool operator==(const ContractionSchedule&) const = default;
};

/// Schedule of a contraction on a GPU: the tile of a thread block, split-K, and how blocks run.
struct BlockContractionSchedule {
  std::vector<std::int64_t> rows = {};  // output tile along each axis of rows
  std::int64_t columns = 1;             // output tile along the columns
  std::vector<std::int64_t> sums = {};  // k-step along each group of fused reduction axes
  bool columns_outer = false;           // grid order: all rows before the next columns
  std::int64_t split = 1;               // split-K parts, whose sums another kernel adds up
  tile::BlockRequest block = {};
  bool operator==(const BlockContractionSchedule&) const = default;
};

/// Schedule of a convolution by Winograd's algorithm F(m x m, 3 x 3): a program transforms the
/// pixels of a block of tiles, and multiplies them with some blocks of filters.
struct WinogradSchedule {
  std::int64_t m = 4;
  std::int64_t images = 1, slices = 1, rows = 1, columns = 1;  // tiles of a block along n, z, y, x
  std::int64_t filters = 0;                                    // of a block
  std::int64_t panel = 0;     // filters per panel of the packed weight
  std::int64_t programs = 1;  // that divide the filters of a block of tiles
  bool operator==(const WinogradSchedule&) const = default;
};

/// Schedule of attention: a tile of scores.
struct AttentionSchedule {
  std::int64_t rows = 1;
  std::int64_t keys = 0;  // of a tile with an online softmax; 0: whole rows of the scores
  bool operator==(const AttentionSchedule&) const = default;
};

/// Schedule of a row-wise group: the tile along each class of axes.
struct RowsSchedule {
  std::vector<std::int64_t> blocks = {};
  bool operator==(const RowsSchedule&) const = default;
};

/// Schedule of loop nests: the primitives of each stage.
struct LoopsSchedule {
  std::vector<std::vector<tile::Step>> stages = {};
  bool operator==(const LoopsSchedule&) const = default;
};

/// Schedule of a fusion group: which strategy lowers it, and its parameters.
using GroupSchedule = std::variant<ContractionSchedule, WinogradSchedule, AttentionSchedule,
                                   RowsSchedule, LoopsSchedule, BlockContractionSchedule>;

/// Prints a schedule as one line, which parses back:
///
///   contraction rows=8,56 columns=64 sums=1,576 panel=32 columns_outer=0
///   loops split(i, 64); vectorize(i.i); parallel(i.o)
std::string to_text(const GroupSchedule& schedule);
Expected<GroupSchedule> parse_group_schedule(std::string_view text, const std::string& file = {});

/// Diagnostic of a schedule that does not fit its group.
Diagnostic illegal_schedule(std::string reason);

}  // namespace tessera::lower
