#include "tessera/lower/cost_model.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "tessera/lower/contraction.h"
#include "tessera/lower/gpu_tiles.h"
#include "tessera/lower/schedule_features.h"
#include "tessera/lower/winograd.h"

namespace tessera::lower {
namespace {

/// Candidates of a strategy that the learned model ranks, by analytic estimate; and the best of
/// each tile of rows, so that an error of the estimate does not rule a tile out.
constexpr std::size_t kShortList = 48;
/// Gain, as a logarithm to base 2, below which the analytic choice is kept. Of 0, 0.05, 0.1, 0.15
/// and 0.2, the least number of choices far from the best in cross-validation over the training
/// shapes (docs/adr/0018-schedules-as-data.md).
constexpr double kLeastGain = 0.05;

/// Shipped model by name, if its features are those of this build.
std::optional<TreeModel> shipped_model(std::string_view name,
                                       std::span<const std::string_view> features) {
  const auto models = shipped_cost_models();
  const auto file = std::ranges::find(models, name, &ShippedCostModel::name);
  if (file == models.end()) return std::nullopt;
  auto parsed = TreeModel::parse(file->text);
  if (!parsed || !std::ranges::equal(parsed->features(), features)) return std::nullopt;
  return *std::move(parsed);
}

/// Model of the family of AVX-512 machines, for f32 in one thread.
const TreeModel* avx512_model() {
  static const auto model = shipped_model("x86-64-avx512", panel_feature_names());
  return model ? &*model : nullptr;
}

/// Model of Hopper GPUs, for 16-bit floats.
const TreeModel* hopper_model() {
  static const auto model = shipped_model("sm_90a", block_feature_names());
  return model ? &*model : nullptr;
}

/// Packed weights of a 3 x 3 convolution per filter and channel; of other contractions, where all
/// schedules have as many, the same number.
std::int64_t weights_of(const GroupSchedule& schedule) {
  const auto* winograd = std::get_if<WinogradSchedule>(&schedule);
  return winograd == nullptr ? 9 : (winograd->m + 2) * (winograd->m + 2);
}

/// Short list of candidates in ascending order of their estimates.
std::vector<ScheduleCandidate> short_list(std::vector<ScheduleCandidate> all) {
  std::vector<std::vector<std::int64_t>> tiles;  // of rows that are in the list
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto* contraction = std::get_if<ContractionSchedule>(&all[i].schedule);
    const bool is_new =
        contraction != nullptr && std::ranges::find(tiles, contraction->rows) == tiles.end();
    if (!is_new && i >= kShortList) continue;
    if (is_new) tiles.push_back(contraction->rows);
    if (kept != i) all[kept] = std::move(all[i]);
    ++kept;
  }
  all.resize(kept);
  return all;
}

/// Short list of the two strategies of a CPU.
std::vector<ScheduleCandidate> panel_short_list(const Group& group, const machine::Machine& machine,
                                                const GroupOptions& options,
                                                const GroupSchedule& usual) {
  // Measurements have b packed ahead, or its columns side by side.
  const auto contraction = contraction_of(group, std::nullopt);
  if (contraction && contraction->packs_b_across()) return {};
  std::vector<ScheduleCandidate> candidates;
  for (const auto space : {contraction_space, winograd_space}) {
    std::vector<ScheduleCandidate> all = space(group, machine, options);
    // Measurements have weights in the caches; the analytic models know what larger weights cost.
    std::erase_if(all, [&](const ScheduleCandidate& one) {
      return weights_of(one.schedule) > weights_of(usual);
    });
    std::ranges::move(short_list(std::move(all)), std::back_inserter(candidates));
  }
  return candidates;
}

}  // namespace

const TreeModel* cost_model_for(const machine::Machine& machine, const GroupOptions& options) {
  if (machine.is_gpu()) {
    // Measurements are of a GPU with so many multiprocessors; waves of programs on one of half or
    // twice as many are among them.
    constexpr int kMeasured = 132;
    const machine::Gpu& gpu = *machine.gpu;
    const bool is_half =
        options.contraction_dtype == DType::F16 || options.contraction_dtype == DType::BF16;
    const bool is_near =
        2 * gpu.multiprocessors >= kMeasured && gpu.multiprocessors <= 2 * kMeasured;
    return is_half && is_near && gpu.architecture == "sm_90a" ? hopper_model() : nullptr;
  }
  const bool is_avx512 = machine.architecture == machine::Architecture::X86_64 &&
                         machine.has("avx512f") && machine.vector_bytes == 64;
  const bool is_known = options.contraction_dtype == DType::F32 && machine.cores == 1;
  return is_avx512 && is_known ? avx512_model() : nullptr;
}

std::vector<std::optional<double>> predicted_times(const Group& group,
                                                   const machine::Machine& machine,
                                                   const GroupOptions& given,
                                                   std::span<const ScheduleCandidate> candidates) {
  std::vector<std::optional<double>> times;
  const GroupOptions options = effective_options(group, machine, given);
  const TreeModel* const model = cost_model_for(machine, options);
  if (model == nullptr) return times;
  const auto features = schedule_features(group, machine, options);
  if (features == nullptr || features->is_quantized()) return times;
  std::vector<ScheduleFeatures::Vector> vectors;
  for (const ScheduleCandidate& one : candidates) {
    auto vector = (*features)(one.schedule);
    times.push_back(vector ? std::optional<double>(0) : std::nullopt);
    if (vector) vectors.push_back(*std::move(vector));
  }
  std::size_t next = 0;
  const std::vector<float> predicted = model->predict_all(vectors);
  for (std::optional<double>& time : times)
    if (time) time = predicted[next++];
  return times;
}

namespace {

/// Candidates of a GPU that the learned model ranks: those with the tiles and split-K that it
/// predicts to be the fastest while the compiler chooses how blocks run.
std::vector<ScheduleCandidate> block_short_list(const Group& group, const machine::Machine& machine,
                                                const GroupOptions& options) {
  constexpr std::size_t kTilings = 12;
  const auto tiling_of = [](const ScheduleCandidate& one) {
    BlockContractionSchedule tiling = std::get<BlockContractionSchedule>(one.schedule);
    tiling.block = {};
    tiling.columns_outer = false;
    return tiling;
  };
  std::vector<ScheduleCandidate> all = block_space(group, machine, options), plain;
  for (const ScheduleCandidate& one : all)
    if (one.schedule == GroupSchedule(tiling_of(one))) plain.push_back(one);
  const auto times = predicted_times(group, machine, options, plain);
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return !times[i].has_value(); });
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return *times[i]; });
  if (order.size() > kTilings) order.resize(kTilings);
  std::erase_if(all, [&](const ScheduleCandidate& one) {
    return std::ranges::none_of(
        order, [&](std::size_t i) { return plain[i].schedule == GroupSchedule(tiling_of(one)); });
  });
  return all;
}

}  // namespace

std::optional<GroupSchedule> analytic_schedule(const Group& group, const machine::Machine& machine,
                                               const GroupOptions& options) {
  if (machine.is_gpu()) return default_block_schedule(group, machine, options);
  if (!options.exact)
    if (const auto convolution = convolution3x3(group.stages[0], group.weights))
      if (const auto plan = plan_winograd(*convolution, machine)) return *plan;
  const auto contraction = contraction_of(group, std::nullopt);
  if (!contraction || contraction->bytes) return std::nullopt;
  return schedule_of(default_tiling(*contraction, options, machine));
}

std::optional<GroupSchedule> learned_schedule(const Group& group, const machine::Machine& machine,
                                              const GroupOptions& options) {
  if (cost_model_for(machine, options) == nullptr || group.stages.size() != 1) return std::nullopt;
  const std::optional<GroupSchedule> usual = analytic_schedule(group, machine, options);
  if (!usual) return std::nullopt;
  std::vector<ScheduleCandidate> candidates = {{*usual, 0}};
  std::ranges::move(machine.is_gpu() ? block_short_list(group, machine, options)
                                     : panel_short_list(group, machine, options, *usual),
                    std::back_inserter(candidates));
  const auto times = predicted_times(group, machine, options, candidates);
  if (times.empty() || !times[0]) return std::nullopt;
  std::size_t best = 0;
  for (std::size_t i = 1; i < times.size(); ++i)
    if (times[i] && *times[i] < *times[best]) best = i;
  if (*times[0] - *times[best] < kLeastGain) return std::nullopt;
  return candidates[best].schedule;
}

}  // namespace tessera::lower
