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
  /// Sizes are logarithms to base 2, of elements unless it is said otherwise.
  enum Feature : std::uint8_t {
    kRows,
    kColumns,
    kSums,
    kBatch,
    kCycles,    // analytic estimate
    kEstimate,  // the same per multiply-add
    kTileRows,
    kTileColumns,
    kTileSums,
    kSplitK,
    kStages,  // 0 here and in the next two: the scheduler of blocks chooses
    kWarps,
    kProducers,
    kColumnsOuter,
    kPrograms,
    kWaves,      // programs over multiprocessors
    kImbalance,  // whole waves over waves
    kSteps,      // k-steps of a program
    kRowWaste,   // rows of tiles over rows
    kColumnWaste,
    kSumWaste,
    kAccumulators,  // accumulators of a program
    kThreadSums,    // accumulators of a thread
    kStepBytes,     // of both operands in a stage
    kStageBytes,    // of all stages, over the shared memory of a block
    kIntensity,     // multiply-adds per element that a program loads
    kReadsOfA,      // bytes that all programs load
    kReadsOfB,
    kWrites,       // bytes of the result, and of the parts of split-K
    kTensorBytes,  // of both operands and the result
    kIsBoxA,       // an image with padding
    kContiguousA,  // elements of a that are contiguous along the reduction
    kContiguousB,
    kAlignmentA,  // elements that all rows of a are aligned to, 8 at most
    kAlignmentB,
    kAlignmentC,
    kReadA,     // operand a is a tensor in memory
    kWeightB,   // operand b is a weight
    kOperands,  // that the group reads
    kTranscendental,
    kCopies,  // stages before, which copy an operand
    kReductionAxes,
    kTileRowLength,  // of the tile along the innermost axis of rows
    kTileRowAxes,    // axes of rows that the tile spans
    kElementBytes,
    kUsesTensorCores,
    kUsesWarpgroups,
    kMultiprocessors,
    kFeatureCount
  };

  static constexpr std::array<std::string_view, kFeatureCount> kNames = {"rows",
                                                                         "columns",
                                                                         "sums",
                                                                         "batch",
                                                                         "cycles",
                                                                         "estimate",
                                                                         "tile_rows",
                                                                         "tile_columns",
                                                                         "tile_sums",
                                                                         "split_k",
                                                                         "stages",
                                                                         "warps",
                                                                         "producers",
                                                                         "columns_outer",
                                                                         "programs",
                                                                         "waves",
                                                                         "imbalance",
                                                                         "steps",
                                                                         "row_waste",
                                                                         "column_waste",
                                                                         "sum_waste",
                                                                         "accumulators",
                                                                         "thread_sums",
                                                                         "step_bytes",
                                                                         "stage_bytes",
                                                                         "intensity",
                                                                         "reads_of_a",
                                                                         "reads_of_b",
                                                                         "writes",
                                                                         "tensor_bytes",
                                                                         "is_box_a",
                                                                         "contiguous_a",
                                                                         "contiguous_b",
                                                                         "alignment_a",
                                                                         "alignment_b",
                                                                         "alignment_c",
                                                                         "read_a",
                                                                         "weight_b",
                                                                         "operands",
                                                                         "transcendental",
                                                                         "copies",
                                                                         "reduction_axes",
                                                                         "tile_row_length",
                                                                         "tile_row_axes",
                                                                         "element_bytes",
                                                                         "uses_tensor_cores",
                                                                         "uses_warpgroups",
                                                                         "multiprocessors"};

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
  Vector common_ = Vector(kFeatureCount, 0.0F);
};

void BlockFeatures::fill_common() {
  const Contraction& c = *form_.contraction();
  const GpuContractionCost cost(c, form_.options(), machine_);
  const double m = number(count(c.rows)), n = number(c.column.extent), k = number(count(c.sums)),
               batch = number(count(c.batch)),
               width = number(byte_width(form_.options().contraction_dtype));
  work_ = batch * m * n * k;
  common_[kRows] = log_feature(m);
  common_[kColumns] = log_feature(n);
  common_[kSums] = log_feature(k);
  common_[kBatch] = log_feature(batch);
  common_[kTensorBytes] = log_feature(width * batch * (m * k + n * k + m * n));
  const AxisGroups sums = merged_sums(c);
  common_[kReductionAxes] = static_cast<float>(sums.size());
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
  common_[kIsBoxA] = flag_feature(!c.a.reads.empty() && c.a.reads[0].box.has_value());
  common_[kContiguousA] = contiguous(c.a);
  common_[kContiguousB] = contiguous(c.b);
  common_[kAlignmentA] = static_cast<float>(alignment_of(c.a, axes));
  common_[kAlignmentB] = c.known_b ? 8.0F : static_cast<float>(alignment_of(c.b, axes));
  common_[kAlignmentC] =
      static_cast<float>(std::min<std::int64_t>(8, c.column.extent & -c.column.extent));
  common_[kReadA] = flag_feature(is_read(c.a));
  common_[kWeightB] = flag_feature(c.known_b.has_value());
  common_[kOperands] = static_cast<float>(c.stage->operands.size());
  common_[kTranscendental] = flag_feature(calls_transcendental(c.stage->output.value));
  common_[kCopies] = static_cast<float>(c.before.size());
  common_[kElementBytes] = static_cast<float>(width);
  common_[kUsesTensorCores] = flag_feature(cost.uses_tensor_cores());
  common_[kMultiprocessors] = log_feature(machine_.gpu->multiprocessors);
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
               split = number(schedule.split), width = f[kElementBytes];
  double row_tiles = 1, rows = 1;
  for (std::size_t i = 0; i < c.rows.size(); ++i) {
    row_tiles *= number(ceil_div(c.rows[i].extent, tiles.rows[i]));
    rows *= number(c.rows[i].extent);
    if (tiles.rows[i] > 1) ++f[kTileRowAxes];
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
  f[kCycles] = log_feature(cycles);
  f[kEstimate] = log_feature(cycles / work_);
  f[kTileRows] = log_feature(m);
  f[kTileColumns] = log_feature(n);
  f[kTileSums] = log_feature(k);
  f[kSplitK] = log_feature(split);
  f[kStages] = static_cast<float>(schedule.block.stages);
  f[kWarps] = static_cast<float>(schedule.block.warps);
  f[kProducers] = static_cast<float>(schedule.block.producers);
  f[kColumnsOuter] = flag_feature(schedule.columns_outer);
  f[kPrograms] = log_feature(programs);
  f[kWaves] = log_feature(waves);
  f[kImbalance] = static_cast<float>(std::ceil(waves) / waves);
  f[kSteps] = log_feature(steps);
  f[kRowWaste] = static_cast<float>(row_tiles * m / rows);
  f[kColumnWaste] = static_cast<float>(column_tiles * n / number(c.column.extent));
  f[kSumWaste] = static_cast<float>(steps * split * k / number(extent));
  f[kAccumulators] = log_feature(m * n);
  f[kThreadSums] = log_feature(m * n / number(32 * warps));
  f[kStepBytes] = log_feature(width * k * (m + n));
  f[kStageBytes] =
      static_cast<float>(std::max(schedule.block.stages, 2) * width * k * (m + n) /
                         number(machine::shared_bytes_of_block(machine_.gpu->architecture)));
  f[kIntensity] = log_feature(m * n / (m + n));
  f[kReadsOfA] = log_feature(width * programs * steps * m * k);
  f[kReadsOfB] = log_feature(width * programs * steps * n * k);
  f[kWrites] = log_feature(batch * rows * number(c.column.extent) *
                           (width + (schedule.split > 1 ? 8 * split : 0)));
  f[kTileRowLength] = tiles.rows.empty() ? 0 : log_feature(number(tiles.rows.back()));
  f[kUsesWarpgroups] = flag_feature(cost.uses_wgmma() && m >= 64 && n >= 16);
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
