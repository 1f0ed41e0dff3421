#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/lower/block_form.h"
#include "tessera/lower/contraction_cost.h"
#include "tessera/lower/feature_value.h"
#include "tessera/lower/gpu_cost.h"
#include "tessera/lower/gpu_tiles.h"
#include "tessera/lower/schedule_features.h"

namespace tessera::lower {
namespace {

/// Elements that every row of an operand is aligned to: asynchronous copies take 16 bytes.
std::int64_t alignment_of(const Factor& factor, std::span<const IndexAxes* const> axes) {
  std::int64_t least = 8;
  if (factor.reads.empty()) return 1;
  const auto take = [&](std::int64_t stride) {
    if (stride != 0 && stride != 1) least = std::min(least, stride & -stride);
  };
  const StridedRead& read = factor.reads[0];
  if (read.box) {
    std::ranges::for_each(read.box->strides, take);
    return least;
  }
  for (const IndexAxes* const some : axes)
    for (const IndexAxis& axis : *some) take(read.at.factor(axis.name));
  return least;
}

class BlockFeatures final : public ScheduleFeatures {
 public:
  /// Names in the order of the vectors. Sizes are logarithms to base 2, of elements unless it is
  /// said otherwise.
  static constexpr std::array kNames = std::to_array<std::string_view>({
      "rows",
      "columns",
      "sums",
      "batch",
      "cycles",    // analytic estimate
      "estimate",  // the same per multiply-add
      "tile_rows",
      "tile_columns",
      "tile_sums",
      "split_k",
      "stages",  // 0 here and in the next two: the scheduler of blocks chooses
      "warps",
      "producers",
      "columns_outer",
      "programs",
      "waves",      // programs over multiprocessors
      "imbalance",  // whole waves over waves
      "steps",      // k-steps of a program
      "row_waste",  // rows of tiles over rows
      "column_waste",
      "sum_waste",
      "accumulators",  // accumulators of a program
      "thread_sums",   // accumulators of a thread
      "step_bytes",    // of both operands in a stage
      "stage_bytes",   // of all stages, over the shared memory of a block
      "intensity",     // multiply-adds per element that a program loads
      "reads_of_a",    // bytes that all programs load
      "reads_of_b",
      "writes",        // bytes of the result, and of the parts of split-K
      "tensor_bytes",  // of both operands and the result
      "is_box_a",      // an image with padding
      "contiguous_a",  // elements of a that are contiguous along the reduction
      "contiguous_b",
      "alignment_a",  // elements that all rows of a are aligned to, 8 at most
      "alignment_b",
      "alignment_c",
      "read_a",    // operand a is a tensor in memory
      "weight_b",  // operand b is a weight
      "operands",  // that the group reads
      "transcendental",
      "copies",  // stages before, which copy an operand
      "reduction_axes",
      "tile_row_length",  // of the tile along the innermost axis of rows
      "tile_row_axes",    // axes of rows that the tile spans
      "element_bytes",
      "uses_tensor_cores",
      "uses_warpgroups",
      "multiprocessors",
  });
  /// Position of a feature; another name does not compile.
  static consteval std::size_t at(std::string_view name) {
    const auto found = std::ranges::find(kNames, name);
    if (found == kNames.end()) throw name;
    return static_cast<std::size_t>(found - kNames.begin());
  }

  BlockFeatures(const Group& group, const machine::Machine& machine, const GroupOptions& options)
      : form_(group, options), machine_(machine) {
    if (form_.contraction() != nullptr) fill_common();
  }

  std::optional<Vector> operator()(const GroupSchedule& schedule) const override {
    const auto* block = std::get_if<BlockContractionSchedule>(&schedule);
    if (block == nullptr || block->rows.size() != form_.contraction()->rows.size())
      return std::nullopt;
    const auto is_positive = [](std::int64_t number) { return number > 0; };
    if (!std::ranges::all_of(block->rows, is_positive) || block->columns < 1 || block->split < 1 ||
        !std::ranges::all_of(block->sums, is_positive))
      return std::nullopt;
    return of(*block);
  }
  double work() const override { return work_; }
  bool is_quantized() const override { return false; }

 private:
  void fill_common();
  std::optional<Vector> of(const BlockContractionSchedule& schedule) const;

  BlockForm form_;
  machine::Machine machine_;
  double work_ = 0;
  Vector common_ = Vector(kNames.size(), 0.0F);
};

void BlockFeatures::fill_common() {
  const Contraction& c = *form_.contraction();
  const GpuContractionCost cost(c, form_.options(), machine_);
  const double m = number(count(c.rows)), n = number(c.column.extent), k = number(count(c.sums)),
               batch = number(count(c.batch)),
               width = number(byte_width(form_.options().contraction_dtype));
  work_ = batch * m * n * k;
  common_[at("rows")] = log_feature(m);
  common_[at("columns")] = log_feature(n);
  common_[at("sums")] = log_feature(k);
  common_[at("batch")] = log_feature(batch);
  common_[at("tensor_bytes")] = log_feature(width * batch * (m * k + n * k + m * n));
  const AxisGroups sums = merged_sums(c);
  common_[at("reduction_axes")] = static_cast<float>(sums.size());
  const auto contiguous = [&](const Factor& factor) {
    if (factor.reads.empty() || sums.empty()) return 0.0F;
    return factor.reads[0].at.factor(sums.back().name()) == 1
               ? log_feature(number(sums.back().extent()))
               : 0.0F;
  };
  const auto is_read = [](const Factor& factor) {
    return std::holds_alternative<node::Read>(factor.value.node());
  };
  const IndexAxes columns = {c.column};
  const std::array axes = {&c.batch, &c.rows, &columns, &c.sums};
  common_[at("is_box_a")] = flag_feature(!c.a.reads.empty() && c.a.reads[0].box.has_value());
  common_[at("contiguous_a")] = contiguous(c.a);
  common_[at("contiguous_b")] = contiguous(c.b);
  common_[at("alignment_a")] = static_cast<float>(alignment_of(c.a, axes));
  common_[at("alignment_b")] = c.known_b ? 8.0F : static_cast<float>(alignment_of(c.b, axes));
  common_[at("alignment_c")] =
      static_cast<float>(std::min<std::int64_t>(8, c.column.extent & -c.column.extent));
  common_[at("read_a")] = flag_feature(is_read(c.a));
  common_[at("weight_b")] = flag_feature(c.known_b.has_value());
  common_[at("operands")] = static_cast<float>(c.stage->operands.size());
  common_[at("transcendental")] = flag_feature(calls_transcendental(c.stage->output.value));
  common_[at("copies")] = static_cast<float>(c.before.size());
  common_[at("element_bytes")] = static_cast<float>(width);
  common_[at("uses_tensor_cores")] = flag_feature(cost.uses_tensor_cores());
  common_[at("multiprocessors")] = log_feature(machine_.gpu->multiprocessors);
}

std::optional<ScheduleFeatures::Vector> BlockFeatures::of(
    const BlockContractionSchedule& schedule) const {
  const Contraction& c = *form_.contraction();
  const GpuContractionCost cost(c, form_.options(), machine_);
  ContractionTiles tiles{.rows = schedule.rows, .columns = schedule.columns};
  std::int64_t step = 1;
  for (const std::int64_t tile : schedule.sums) step *= tile;
  // All axes of the reduction as one: a part of split-K may have others than the whole.
  const std::int64_t extent = count(c.sums);
  tiles.sums.push_back({.axes = {{"k", extent}}, .tile = step});
  Vector f = common_;
  const double m = number(tiles.row_count()), n = number(tiles.columns), k = number(step),
               split = number(schedule.split), width = f[at("element_bytes")];
  double row_tiles = 1, rows = 1;
  for (std::size_t i = 0; i < c.rows.size(); ++i) {
    row_tiles *= number(ceil_div(c.rows[i].extent, tiles.rows[i]));
    rows *= number(c.rows[i].extent);
    if (tiles.rows[i] > 1) ++f[at("tile_row_axes")];
  }
  const double column_tiles = number(ceil_div(c.column.extent, tiles.columns));
  const double batch = number(count(c.batch));
  const double programs = batch * row_tiles * column_tiles * split;
  const double waves = programs / machine_.gpu->multiprocessors;
  const double steps = std::ceil(number(ceil_div(extent, step)) / split);
  const double cycles = cost(tiles, usual_step_of(c, form_.options()), schedule.split) +
                        (schedule.split > 1 ? cost.of_parts(schedule.split) : 0);
  const std::int64_t warps = schedule.block.warps > 0
                                 ? schedule.block.warps
                                 : usual_warps(tiles.row_count() * tiles.columns);
  f[at("cycles")] = log_feature(cycles);
  f[at("estimate")] = log_feature(cycles / work_);
  f[at("tile_rows")] = log_feature(m);
  f[at("tile_columns")] = log_feature(n);
  f[at("tile_sums")] = log_feature(k);
  f[at("split_k")] = log_feature(split);
  f[at("stages")] = static_cast<float>(schedule.block.stages);
  f[at("warps")] = static_cast<float>(schedule.block.warps);
  f[at("producers")] = static_cast<float>(schedule.block.producers);
  f[at("columns_outer")] = flag_feature(schedule.columns_outer);
  f[at("programs")] = log_feature(programs);
  f[at("waves")] = log_feature(waves);
  f[at("imbalance")] = static_cast<float>(std::ceil(waves) / waves);
  f[at("steps")] = log_feature(steps);
  f[at("row_waste")] = static_cast<float>(row_tiles * m / rows);
  f[at("column_waste")] = static_cast<float>(column_tiles * n / number(c.column.extent));
  f[at("sum_waste")] = static_cast<float>(steps * split * k / number(extent));
  f[at("accumulators")] = log_feature(m * n);
  f[at("thread_sums")] = log_feature(m * n / number(32 * warps));
  f[at("step_bytes")] = log_feature(width * k * (m + n));
  f[at("stage_bytes")] =
      static_cast<float>(std::max(schedule.block.stages, 2) * width * k * (m + n) /
                         number(machine::shared_bytes_of_block(machine_.gpu->architecture)));
  f[at("intensity")] = log_feature(m * n / (m + n));
  f[at("reads_of_a")] = log_feature(width * programs * steps * m * k);
  f[at("reads_of_b")] = log_feature(width * programs * steps * n * k);
  f[at("writes")] = log_feature(batch * rows * number(c.column.extent) *
                                (width + (schedule.split > 1 ? 8 * split : 0)));
  f[at("tile_row_length")] = tiles.rows.empty() ? 0 : log_feature(number(tiles.rows.back()));
  f[at("uses_warpgroups")] = flag_feature(cost.uses_wgmma() && m >= 64 && n >= 16);
  return f;
}

}  // namespace

std::unique_ptr<const ScheduleFeatures> block_features(const Group& group,
                                                       const machine::Machine& machine,
                                                       const GroupOptions& options) {
  auto features = std::make_unique<BlockFeatures>(group, machine, options);
  if (!(features->work() > 0)) return nullptr;
  return features;
}

std::span<const std::string_view> block_feature_names() {
  return BlockFeatures::kNames;
}

}  // namespace tessera::lower
