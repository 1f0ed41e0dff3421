#include "cli/tune_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/json.h"
#include "tessera/driver/event_records.h"
#include "tessera/driver/target_selection.h"
#include "tessera/support/file.h"
#include "tessera/tune/gpu_query.h"

namespace tessera::cli {
namespace {

nlohmann::json constants_json(const KernelVariant& variant) {
  nlohmann::json object = nlohmann::json::object();
  for (const tile::Constant& one : variant.constants) object[one.name] = one.value;
  return object;
}

nlohmann::json tuned_json(const TunedKernel& tuned) {
  const tune::TaskResult& result = tuned.outcome();
  return {{"target", tuned.target},
          {"kernel", tuned.task.what},
          {"key", tuned.task.key},
          {"space", tuned.task.space.size()},
          {"default_seconds", result.default_seconds},
          {"default", constants_json(tuned.task.variants[tuned.task.usual])},
          {"trials", result.trials.size()},
          {"known", result.known},
          {"failed", result.failed},
          {"chosen", constants_json(tuned.best())},
          {"is_default", !result.chosen},
          {"ratio", result.ratio},
          {"ratio_low", result.low},
          {"ratio_high", result.high},
          {"seconds", tuned.result.seconds},
          {"end", tune::to_string(tuned.result.end)}};
}

void print_tuned(const TunedKernel& tuned, int rows) {
  const tune::TaskResult& result = tuned.outcome();
  std::vector<tune::Trial> trials = result.trials;
  std::erase_if(trials, [](const tune::Trial& trial) { return !(trial.ratio > 0); });
  std::ranges::stable_sort(trials, {}, &tune::Trial::ratio);
  fmt::print("{:>10} {:>6}  {}\n", "us", "ratio", tuned.task.what);
  const auto row = [&](double ratio, std::size_t candidate, std::string_view note) {
    fmt::print("{:>10.2f} {:>6.3f}  {}{}\n", 1e6 * ratio * result.default_seconds, ratio,
               tuned.task.space[candidate].schedule, note);
  };
  row(1, tuned.task.usual, "  (default)");
  for (std::size_t i = 0; i < trials.size() && static_cast<int>(i) < rows; ++i)
    row(trials[i].ratio, trials[i].candidate, "");
  if (static_cast<int>(trials.size()) > rows)
    fmt::print("  … and {} more (--rows)\n", trials.size() - static_cast<std::size_t>(rows));
  fmt::print("{} of {} candidates measured in {:.1f} s ({}), {} known, {} failed\n",
             result.trials.size(), tuned.task.space.size(), tuned.result.seconds,
             tune::to_string(tuned.result.end), result.known, result.failed);
  if (!result.chosen) return fmt::print("no candidate is surely faster: the defaults stay\n");
  fmt::print("chosen: {}, {:.3f} of the default's time (95% CI {:.3f} to {:.3f})\n",
             tuned.task.space[*result.chosen].schedule, result.ratio, result.low, result.high);
}

}  // namespace

std::function<void(const tune::Progress&)> show_progress(ProgressLine& line) {
  return [&line](const tune::Progress& now) {
    line.show(
        static_cast<std::size_t>(10 * std::min(now.seconds, now.budget)),
        static_cast<std::size_t>(10 * now.budget) + 1,
        fmt::format("of the budget, {} tasks, {} candidates, {:.3f} ms -> {:.3f} ms so far",
                    now.tasks, now.trials, 1e3 * now.default_seconds, 1e3 * now.best_seconds));
  };
}

Expected<Done> tune_kernel_command(const TuneKernelFlags& flags, const StoreFlags& store,
                                   Context& context) {
  TESSERA_TRY_DONE(context.start());
  ProgressLine line(context);
  TuneKernelOptions options{.threads = flags.threads,
                            .memory_limit = context.run_memory() / 4,  // four copies are kept
                            .store = store_file(store, context)};
  if (flags.target != "cpu") {
    CompileModelOptions selected;
    TESSERA_TRY(const runtime::cuda::ThisGpu gpu, tune::gpu_in_worker());
    TESSERA_TRY_DONE(select_target(flags.target, "f32", selected, [&] { return gpu; }));
    TESSERA_TRY_DONE(check_gpu(*selected.code.machine.gpu));
    options.machine = selected.code.machine;
  }
  TESSERA_TRY(options.tune.seconds, parse_seconds(flags.budget));
  options.tune.seed = flags.seed;
  options.tune.stop = &context.stop;
  options.tune.progress = show_progress(line);
  KernelText source{.file = flags.kernel, .arguments = flags.arguments, .grid = flags.grid};
  TESSERA_TRY(source.text, read_text(flags.kernel));
  TESSERA_TRY(const TunedKernel tuned, tune_kernel(source, options));
  line.clear();
  if (flags.report.is_asked()) {
    report::EventLog log("tune");
    add_tuning(log, tuned);
    TESSERA_TRY_DONE(write_report(log, flags.report));
  }
  if (context.json)
    print_json(tuned_json(tuned));
  else
    print_tuned(tuned, flags.rows);
  return Done{};
}

}  // namespace tessera::cli
