#include "tessera/lower/gpu_cost.h"

#include <algorithm>

namespace tessera::lower {
namespace {

/// Time of a program on a multiprocessor (SM), in cycles.
struct StepTimes {
  double alone = 0;  // k-step of a program that is alone on the SM
  double pair = 0;   // k-step of two that share it
  double end = 0;    // epilogue
};

/// wgmma with 2-byte operands and k-steps of 64. Measured on an H200 with 870 configurations of 52
/// convolutions. Large tiles are bound by tensor cores, small ones by copy latency; boxes (padded
/// images) add address computation.
StepTimes hopper_pace(double sums, bool is_box) {
  constexpr double kLarge = 128 * 128, kMiddle = 64 * 128, kSmall = 64 * 64;
  // The largest read least, but nothing else runs while their results are written.
  const double end = sums * (sums > kLarge ? 0.16 : 0.14);
  if (sums > kMiddle) {
    const double step = sums * (sums > kLarge ? 0.0305 : 0.0325);
    return {.alone = step, .pair = 2 * step, .end = end};
  }
  if (sums > kSmall) return {.alone = 520, .pair = 940, .end = end};
  return is_box ? StepTimes{.alone = 430, .pair = 700, .end = end}
                : StepTimes{.alone = 330, .pair = 450, .end = end};
}

/// All other instructions: arithmetic, operands from L2, barriers.
StepTimes other_pace(double rows, double columns, bool matrix) {
  const double step = std::max(rows * columns * (matrix ? 0.03 : 0.25), (rows + columns) * 2) + 150;
  return {.alone = step, .pair = 2 * step};
}

}  // namespace

GpuContractionCost::GpuContractionCost(const Contraction& contraction, const GroupOptions& options,
                                       const machine::Machine& machine)
    : c_(contraction), multiprocessors_(machine.gpu->multiprocessors) {
  const bool is_half = options.contraction_dtype != DType::F32;
  is_matrix_ = is_half || options.tf32;
  is_hopper_ = is_half && machine.gpu->architecture == "sm_90a";
  is_box_ = !c_.a.reads.empty() && c_.a.reads[0].box;
}

double GpuContractionCost::operator()(const ContractionTiles& tiles, std::int64_t usual_step,
                                      std::int64_t parts) const {
  std::int64_t programs = parts * count(c_.batch) * ceil_div(c_.column.extent, tiles.columns);
  for (std::size_t i = 0; i < c_.rows.size(); ++i)
    programs *= ceil_div(c_.rows[i].extent, tiles.rows[i]);
  std::int64_t steps = 1;
  for (const AxisGroup& group : tiles.sums) steps *= ceil_div(group.extent(), group.tile);
  const auto m = static_cast<double>(tiles.row_count()), n = static_cast<double>(tiles.columns);
  const StepTimes pace = is_hopper_ ? hopper_pace(m * n, is_box_) : other_pace(m, n, is_matrix_);
  const std::int64_t waves = ceil_div(programs, multiprocessors_);
  const auto pairs = static_cast<double>(waves / 2), rest = static_cast<double>(waves % 2);
  const auto rounds = static_cast<double>(ceil_div(steps, parts)) *
                      (static_cast<double>(tiles.sum_count()) / static_cast<double>(usual_step));
  return pairs * (rounds * pace.pair + 2 * pace.end) + rest * (rounds * pace.alone + pace.end);
}

double GpuContractionCost::of_parts(std::int64_t parts) const {
  // Cycles of another launch, of each part that it goes through, and of each of the sums that it
  // reads: measured on an H200. Sums beyond the L2 cache are written to memory and read again.
  constexpr double kLaunch = 2500, kPart = 330, kRead = 0.00085, kReadFromMemory = 0.0035;
  constexpr double kCached = 6 << 20;  // sums
  const auto results = static_cast<double>(count(c_.batch) * count(c_.rows) * c_.column.extent);
  const auto number = static_cast<double>(parts);
  const double each = results * number > kCached ? kReadFromMemory : kRead;
  return kLaunch + kPart * number + results * each * (number + 1);
}

}  // namespace tessera::lower
