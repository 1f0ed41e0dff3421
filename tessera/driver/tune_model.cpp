#include "tessera/driver/tune_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/machine/peak.h"
#include "tessera/program/plan.h"
#include "tessera/tune/gpu_query.h"
#include "tessera/tune/process_meter.h"

namespace tessera {
namespace {

double seconds_of(const TunedModel& tuned, bool with_chosen) {
  double sum = 0;
  for (std::size_t i = 0; i < tuned.tasks.size(); ++i) {
    const tune::TaskResult& task = tuned.result.tasks[i];
    sum += tuned.tasks[i].uses * task.default_seconds * (with_chosen ? task.ratio : 1);
  }
  return sum;
}

/// Times the whole program with and without the chosen schedules, and gives them up if it is
/// slower.
Expected<Done> check_whole(const Graph& graph, const program::CompileOptions& code,
                           cost::Store& store, TunedModel& tuned) {
  program::ScheduleBook book;
  for (std::size_t i = 0; i < tuned.tasks.size(); ++i)
    if (const auto& chosen = tuned.result.tasks[i].chosen)
      book.entries.insert_or_assign(
          tuned.tasks[i].key, program::ScheduleBook::Entry{tuned.tasks[i].schedules[*chosen], ""});
  if (book.entries.empty()) return Done{};
  cost::CompareOptions how{.code = code, .blocks = 30, .block_seconds = 0.03, .stop = code.stop};
  how.b_schedules = std::make_shared<const program::ScheduleBook>(std::move(book));
  auto comparison = cost::compare(graph, graph, how);
  // Programs with inputs that cannot be generated are not compared.
  if (!comparison) return Done{};
  tuned.comparison = *std::move(comparison);
  tuned.kept = tuned.comparison->low <= 1;
  if (tuned.kept) return Done{};
  for (std::size_t i = 0; i < tuned.tasks.size(); ++i) {
    tune::TaskResult& task = tuned.result.tasks[i];
    if (!task.chosen) continue;
    TESSERA_TRY_DONE(store.choose(tuned.target, tuned.tasks[i].key, ""));
    task.chosen.reset();
    task.ratio = task.low = task.high = 1;
  }
  return Done{};
}

}  // namespace

Expected<Done> check_gpu(const machine::Gpu& target) {
  TESSERA_TRY(const runtime::cuda::ThisGpu gpu, tune::gpu_in_worker());
  const bool can_run = target.architecture != "sm_90a" || gpu.architecture == "sm_90a";
  if (can_run && gpu.multiprocessors == target.multiprocessors) return Done{};
  return Diagnostic{
      .id = "tune-target",
      .message =
          fmt::format("the GPU of this computer is not the target: {} with {} multiprocessors",
                      target.architecture, target.multiprocessors),
      .note = fmt::format("it runs {}, and has {}", gpu.architecture, gpu.multiprocessors),
      .help = "say --target cuda"};
}

Expected<Done> add_target(cost::Store& store, cost::Target target) {
  TESSERA_TRY(const std::optional<cost::Target> found, store.find(target.name));
  if (found) return Done{};
  if (target.machine.is_gpu()) return store.put(target);
  target.flops_per_second = machine::measured_peak() * target.threads;
  target.bytes_per_second = machine::measured_bandwidth() * std::min(target.threads, 4);
  return store.put(target);
}

double TunedModel::default_seconds() const {
  return seconds_of(*this, false);
}
double TunedModel::tuned_seconds() const {
  return seconds_of(*this, true);
}

Expected<TunedModel> tune_model(const Model& model, const InputShapes& shapes,
                                const TuneModelOptions& options) {
  constexpr std::int64_t kMostWeights = std::int64_t{64} << 20;
  program::CompileOptions code = options.compile.code;
  code.schedules.reset();
  code.contraction_dtype = contraction_dtypes(options.compile).front();
  if (code.machine.is_gpu()) TESSERA_TRY_DONE(check_gpu(*code.machine.gpu));
  TESSERA_TRY(const Graph graph, specialized(model.graph, shapes));
  TESSERA_TRY(const passes::Optimized optimized, passes::optimize(graph, code.passes));
  program::Lowerings lowerings = program::lowerings_for(code);
  TESSERA_TRY(const program::Draft draft,
              program::plan(optimized.graph, {.options = code, .lowerings = lowerings}));
  TunedModel tuned;
  tuned.tasks = tune::tasks_of(draft, lowerings);
  std::int64_t weights = 0;
  for (const runtime::Value& value : draft.program.values)
    if (value.home == runtime::Value::Home::Weight) weights += value.bytes;

  const cost::Target target = cost::target_of(code.machine, code.threads);
  tuned.target = target.name;
  TESSERA_TRY(cost::Store store, cost::Store::open(options.store));
  TESSERA_TRY_DONE(add_target(store, target));
  const std::unique_ptr<tune::Meter> meter = tune::process_meter(
      tuned.tasks, {.code = code,
                    .weight_bytes = std::clamp<std::int64_t>(weights, 1 << 20, kMostWeights),
                    .stop = options.tune.stop});
  std::vector<const tune::Task*> tasks;
  for (const tune::GroupTask& task : tuned.tasks) tasks.push_back(&task);
  TESSERA_TRY(tuned.result, tune::tune(tasks, *meter, store, target.name, options.tune));
  if (tuned.result.end != tune::TuneResult::End::Stopped)
    TESSERA_TRY_DONE(check_whole(optimized.graph, code, store, tuned));
  return tuned;
}

Expected<std::shared_ptr<const program::ScheduleBook>> stored_schedules(
    const std::filesystem::path& store, const program::CompileOptions& code) {
  std::shared_ptr<const program::ScheduleBook> none;
  std::error_code error;
  if (store.empty() || !std::filesystem::exists(store, error)) return none;
  TESSERA_TRY(const cost::Store opened, cost::Store::open_existing(store));
  TESSERA_TRY(program::ScheduleBook book,
              tune::tuned_schedules(opened, cost::target_of(code.machine, code.threads).name));
  if (book.entries.empty()) return none;
  return std::make_shared<const program::ScheduleBook>(std::move(book));
}

}  // namespace tessera
