#include "tessera/lower/cost_model.h"

#include <algorithm>
#include <iterator>

#include "tessera/lower/contraction.h"
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

/// Parsed model of the family of AVX-512 machines, if it ships and has the features of this build.
const TreeModel* avx512_model() {
  static const std::optional<TreeModel> model = []() -> std::optional<TreeModel> {
    const auto models = shipped_cost_models();
    const auto file = std::ranges::find(models, "x86-64-avx512", &ShippedCostModel::name);
    if (file == models.end()) return std::nullopt;
    auto parsed = TreeModel::parse(file->text);
    const bool fits = parsed && std::ranges::equal(parsed->features(), ScheduleFeatures::names());
    return fits ? std::optional(*std::move(parsed)) : std::nullopt;
  }();
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

}  // namespace

const TreeModel* cost_model_for(const machine::Machine& machine, const GroupOptions& options) {
  if (machine.is_gpu() || options.contraction_dtype != DType::F32 || machine.cores != 1)
    return nullptr;
  const bool is_avx512 = machine.architecture == machine::Architecture::X86_64 &&
                         machine.has("avx512f") && machine.vector_bytes == 64;
  return is_avx512 ? avx512_model() : nullptr;
}

std::vector<std::optional<double>> predicted_times(const Group& group,
                                                   const machine::Machine& machine,
                                                   const GroupOptions& given,
                                                   std::span<const ScheduleCandidate> candidates) {
  std::vector<std::optional<double>> times;
  const GroupOptions options = effective_options(group, machine, given);
  const TreeModel* const model = cost_model_for(machine, options);
  if (model == nullptr) return times;
  const auto features = ScheduleFeatures::of(group, machine, options);
  if (!features || features->is_quantized()) return times;
  for (const ScheduleCandidate& one : candidates) {
    const auto vector = (*features)(one.schedule);
    times.push_back(vector ? std::optional<double>(model->predict(*vector)) : std::nullopt);
  }
  return times;
}

std::optional<GroupSchedule> analytic_schedule(const Group& group, const machine::Machine& machine,
                                               const GroupOptions& options) {
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
  // Measurements have b packed ahead, or its columns side by side.
  const auto contraction = contraction_of(group, std::nullopt);
  if (contraction && contraction->packs_b_across()) return std::nullopt;
  const std::optional<GroupSchedule> usual = analytic_schedule(group, machine, options);
  if (!usual) return std::nullopt;
  std::vector<ScheduleCandidate> candidates = {{*usual, 0}};
  for (const auto space : {contraction_space, winograd_space}) {
    std::vector<ScheduleCandidate> all = space(group, machine, options);
    // Measurements have weights in the caches; the analytic models know what larger weights cost.
    std::erase_if(all, [&](const ScheduleCandidate& one) {
      return weights_of(one.schedule) > weights_of(*usual);
    });
    std::ranges::move(short_list(std::move(all)), std::back_inserter(candidates));
  }
  const auto times = predicted_times(group, machine, options, candidates);
  if (times.empty() || !times[0]) return std::nullopt;
  std::size_t best = 0;
  for (std::size_t i = 1; i < times.size(); ++i)
    if (times[i] && *times[i] < *times[best]) best = i;
  if (*times[0] - *times[best] < kLeastGain) return std::nullopt;
  return candidates[best].schedule;
}

}  // namespace tessera::lower
