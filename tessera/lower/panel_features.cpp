#include "tessera/lower/schedule_features.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/lower/contraction_cost.h"
#include "tessera/lower/feature_value.h"
#include "tessera/lower/winograd.h"

namespace tessera::lower {
namespace {

class PanelFeatures final : public ScheduleFeatures {
 public:
  /// Names in the order of the vectors. Sizes are logarithms to base 2, of elements unless it is
  /// said otherwise.
  static constexpr std::array kNames = std::to_array<std::string_view>({
      "is_winograd", "rows", "columns", "sums", "batch",
      "estimate",  // analytic cycles per multiply-add
      "tile_rows", "tile_columns", "tile_sums", "panel_vectors", "programs",
      "imbalance",       // of cores: time of the last one over the average
      "row_waste",       // rows of register tiles over rows
      "column_waste",    // lanes over columns
      "row_remainder",   // rows beside the last whole register tile
      "partial_panel",   // share of columns in a panel that is not whole vectors: stored through
                         // scratch
      "in_place",        // operand a is read where it is
      "fused_epilogue",  // sums are finished in registers
      "columns_outer", "tile_a_in_l1", "tile_a_in_l2", "panel_in_l1", "tile_b_in_l2",
      "tile_c_in_l1", "tile_c_in_l2", "all_a_in_l2", "all_b_in_l2", "all_b_in_l3", "all_c_in_l2",
      "steps",       // k-steps
      "reads_of_a",  // times that a is read
      "reads_of_b",
      "contiguous",  // elements of a that are contiguous along the reduction
      "reduction_axes",
      "row_stride",       // of operand a, over the contiguous elements
      "tile_row_length",  // of the tile along the innermost axis of rows
      "tile_row_axes",    // axes of rows that the tile spans
      "epilogue_reads", "transcendental", "packed_weights",
      "padded",  // operand a is copied with its padding first
      "element_bytes", "cores", "winograd_tile", "winograd_rounds", "winograd_pixels_in_l2",
      "winograd_sums_in_l2",
      "winograd_waste",  // outputs of tiles over outputs
  });
  /// Position of a feature; another name does not compile.
  static consteval std::size_t at(std::string_view name) {
    const auto found = std::ranges::find(kNames, name);
    if (found == kNames.end()) throw name;
    return static_cast<std::size_t>(found - kNames.begin());
  }

  PanelFeatures(const Group& group, const machine::Machine& machine, const GroupOptions& options)
      : group_(group), machine_(machine), options_(options) {
    contraction_ = contraction_of(group_, std::nullopt);
    if (!contraction_) return;
    fill_common();
    if (!options.exact && options.contraction_dtype == DType::F32 && group.stages.size() == 1)
      convolution_ = convolution3x3(group_.stages[0], group_.weights);
  }
  PanelFeatures(const PanelFeatures&) = delete;  // the contraction refers to the stages
  PanelFeatures& operator=(const PanelFeatures&) = delete;

  std::optional<Vector> operator()(const GroupSchedule& schedule) const override {
    return std::visit([&](const auto& one) { return of(one); }, schedule);
  }
  double work() const override { return work_; }
  bool is_quantized() const override { return contraction_->bytes.has_value(); }

 private:
  void fill_common();
  std::optional<Vector> of(const ContractionSchedule& schedule) const;
  std::optional<Vector> of(const WinogradSchedule& schedule) const;
  template <class Other>
  std::optional<Vector> of(const Other&) const {
    return std::nullopt;
  }
  float imbalance(double programs) const {
    const double cores = std::max(machine_.cores, 1);
    return static_cast<float>(std::ceil(programs / cores) * cores / programs);
  }

  Group group_;
  machine::Machine machine_;
  GroupOptions options_;
  std::optional<Contraction> contraction_ = {};
  std::optional<Convolution3x3> convolution_ = {};
  double work_ = 0;
  Vector common_ = Vector(kNames.size(), 0.0F);
};

void PanelFeatures::fill_common() {
  const Contraction& c = *contraction_;
  const double m = number(count(c.rows)), n = number(c.column.extent), k = number(count(c.sums)),
               batch = number(count(c.batch));
  work_ = batch * m * n * k;
  common_[at("rows")] = log_feature(m);
  common_[at("columns")] = log_feature(n);
  common_[at("sums")] = log_feature(k);
  common_[at("batch")] = log_feature(batch);
  const double l2 = number(machine_.l2), l3 = number(machine_.l3);
  common_[at("all_a_in_l2")] = log_feature(4 * m * k / l2);
  common_[at("all_b_in_l2")] = log_feature(4 * n * k / l2);
  common_[at("all_b_in_l3")] = log_feature(4 * n * k * batch / l3);
  common_[at("all_c_in_l2")] = log_feature(4 * m * n / l2);
  common_[at("cores")] = static_cast<float>(machine_.cores);
  common_[at("epilogue_reads")] = static_cast<float>(c.stage->operands.size());
  common_[at("packed_weights")] = c.known_b ? 1 : 0;
  common_[at("padded")] = c.before.empty() ? 0 : 1;
  const AxisGroups sums = merged_sums(c);
  common_[at("reduction_axes")] = static_cast<float>(sums.size());
  if (!c.a.reads.empty() && !sums.empty() && !c.rows.empty()) {
    const AffineIndex& index = c.a.reads[0].at;
    const bool is_contiguous = index.factor(sums.back().name()) == 1;
    const double run = is_contiguous ? number(sums.back().extent()) : 1;
    common_[at("contiguous")] = log_feature(run);
    common_[at("row_stride")] =
        log_feature(std::max(1.0, std::abs(number(index.factor(c.rows.back().name)))) / run);
  }
}

std::optional<ScheduleFeatures::Vector> PanelFeatures::of(
    const ContractionSchedule& schedule) const {
  const Contraction& c = *contraction_;
  const auto tiling = tiling_of(c, schedule, options_, machine_);
  if (!tiling) return std::nullopt;
  const ContractionTiles& tiles = tiling->tiles;
  const ContractionCost cost(c, tiling->panels, machine_);
  Vector f = common_;
  const std::int64_t lanes = machine_.vector_bytes / 4, mr = cost.register_rows();
  const double m = number(tiles.row_count()), n = number(tiles.columns),
               k = number(tiles.sum_count()), bytes = number(byte_width(tiling->panels.dtype));
  double row_tiles = 1;
  for (std::size_t i = 0; i < c.rows.size(); ++i) {
    row_tiles *= number(ceil_div(c.rows[i].extent, tiles.rows[i]));
    if (tiles.rows[i] > 1) ++f[at("tile_row_axes")];
  }
  const double column_tiles = number(ceil_div(c.column.extent, tiles.columns));
  const double programs = number(count(c.batch)) * row_tiles * column_tiles;
  f[at("estimate")] = log_feature(cost(tiles) / work_);
  f[at("tile_rows")] = log_feature(m);
  f[at("tile_columns")] = log_feature(n);
  f[at("tile_sums")] = log_feature(k);
  f[at("panel_vectors")] = static_cast<float>(ceil_div(tiling->panels.columns, lanes));
  f[at("programs")] = log_feature(programs);
  f[at("imbalance")] = imbalance(programs);
  const std::int64_t whole = ceil_div(tiles.row_count(), mr) * mr;
  f[at("row_waste")] = static_cast<float>(number(whole) * row_tiles / number(count(c.rows)));
  f[at("column_waste")] = static_cast<float>(number(ceil_div(tiles.columns, lanes) * lanes) *
                                             column_tiles / number(c.column.extent));
  f[at("row_remainder")] = static_cast<float>(tiles.row_count() % mr);
  const std::int64_t last_panel = tiles.columns % tiling->panels.columns;
  f[at("partial_panel")] =
      last_panel % lanes == 0 ? 0 : static_cast<float>(number(last_panel) / number(tiles.columns));
  f[at("in_place")] = cost.reads_in_place(tiles) ? 1 : 0;
  f[at("fused_epilogue")] = cost.fuses_epilogue(tiles) ? 1 : 0;
  f[at("transcendental")] = cost.has_transcendental() ? 1 : 0;
  f[at("columns_outer")] = tiles.columns_outer ? 1 : 0;
  const double l1 = number(machine_.l1d), l2 = number(machine_.l2);
  f[at("tile_a_in_l1")] = log_feature(bytes * m * k / l1);
  f[at("tile_a_in_l2")] = log_feature(bytes * m * k / l2);
  f[at("panel_in_l1")] = log_feature(bytes * k * number(tiling->panels.columns) / l1);
  f[at("tile_b_in_l2")] = log_feature(bytes * k * n / l2);
  f[at("tile_c_in_l1")] = log_feature(4 * m * n / l1);
  f[at("tile_c_in_l2")] = log_feature(4 * m * n / l2);
  f[at("steps")] = log_feature(number(count(c.sums)) / k);
  f[at("reads_of_a")] = log_feature(column_tiles);
  f[at("reads_of_b")] = log_feature(row_tiles);
  f[at("tile_row_length")] = tiles.rows.empty() ? 0 : log_feature(number(tiles.rows.back()));
  f[at("element_bytes")] = static_cast<float>(bytes);
  return f;
}

std::optional<ScheduleFeatures::Vector> PanelFeatures::of(const WinogradSchedule& s) const {
  if (!convolution_ || !check(s, *convolution_, machine_)) return std::nullopt;
  const Convolution3x3& conv = *convolution_;
  Vector f = common_;
  const std::int64_t lanes = machine_.vector_bytes / 4;
  const std::int64_t mr = tile::cpu::register_tile(tile::cpu::MatmulUnit::Lanes, machine_).rows;
  const std::int64_t tiles = s.images * s.slices * s.rows * s.columns;
  const double points = number((s.m + 2) * (s.m + 2));
  const std::int64_t tile_rows = ceil_div(conv.rows, s.m),
                     tile_columns = ceil_div(conv.columns, s.m);
  const double blocks = number(ceil_div(conv.images, s.images) * ceil_div(conv.slices, s.slices) *
                               ceil_div(tile_rows, s.rows) * ceil_div(tile_columns, s.columns));
  const std::int64_t filter_blocks = ceil_div(conv.filters, s.filters);
  const double programs = blocks * number(s.programs);
  const double channels = number(conv.channels), filters = number(s.filters), t = number(tiles);
  f[at("is_winograd")] = 1;
  f[at("estimate")] = log_feature(winograd_cost(s, conv, machine_) / work_);
  f[at("tile_rows")] = log_feature(t);
  f[at("tile_columns")] = log_feature(filters);
  f[at("tile_sums")] = log_feature(channels);
  f[at("panel_vectors")] = static_cast<float>(s.panel / lanes);
  f[at("programs")] = log_feature(programs);
  f[at("imbalance")] = imbalance(programs);
  f[at("row_waste")] = static_cast<float>(number(ceil_div(tiles, mr) * mr) / t);
  f[at("column_waste")] =
      static_cast<float>(number(filter_blocks) * filters / number(conv.filters));
  f[at("row_remainder")] = static_cast<float>(tiles % mr);
  const double l1 = number(machine_.l1d), l2 = number(machine_.l2);
  f[at("tile_a_in_l1")] = log_feature(4 * t * channels / l1);
  f[at("tile_a_in_l2")] = log_feature(4 * t * channels / l2);
  f[at("panel_in_l1")] = log_feature(4 * channels * number(s.panel) / l1);
  f[at("tile_b_in_l2")] = log_feature(4 * channels * filters / l2);
  f[at("tile_c_in_l1")] = log_feature(4 * t * filters / l1);
  f[at("tile_c_in_l2")] = log_feature(4 * t * filters / l2);
  f[at("all_b_in_l2")] = log_feature(4 * points * channels * number(conv.filters * conv.taps) / l2);
  f[at("all_b_in_l3")] =
      log_feature(4 * points * channels * number(conv.filters * conv.taps) / number(machine_.l3));
  f[at("reads_of_b")] = log_feature(blocks);
  f[at("element_bytes")] = 4;
  f[at("winograd_tile")] = static_cast<float>(s.m);
  f[at("winograd_rounds")] = log_feature(number(ceil_div(filter_blocks, s.programs)));
  f[at("winograd_pixels_in_l2")] = log_feature(4 * points * t * channels / l2);
  f[at("winograd_sums_in_l2")] = log_feature(4 * points * t * filters / l2);
  f[at("winograd_waste")] =
      static_cast<float>(blocks * t * number(s.m * s.m) /
                         number(conv.images * conv.slices * conv.rows * conv.columns));
  return f;
}

}  // namespace

std::unique_ptr<const ScheduleFeatures> panel_features(const Group& group,
                                                       const machine::Machine& machine,
                                                       const GroupOptions& options) {
  auto features = std::make_unique<PanelFeatures>(group, machine, options);
  if (!(features->work() > 0)) return nullptr;
  return features;
}

std::span<const std::string_view> panel_feature_names() {
  return PanelFeatures::kNames;
}

}  // namespace tessera::lower
