#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/json.h"
#include "cli/report.h"
#include "cli/tune_kernel.h"
#include "tessera/driver/event_records.h"
#include "tessera/driver/tune_model.h"
#include "tessera/tune/gpu_query.h"

namespace tessera::cli {
namespace {

struct TuneFlags {
  std::string model, budget = "60s";
  InputFlags inputs;
  CompileFlags compile;
  ReportFlags report;
  std::uint64_t seed = 1;
  int rows = 20;
  std::vector<std::string> arguments;  // of a kernel
  std::string grid;

  bool is_kernel() const { return std::filesystem::path(model).extension() == ".tile"; }
};

/// Tasks by the time that they have in a run of the model, the longest first.
std::vector<std::size_t> by_time(const TunedModel& tuned) {
  std::vector<std::size_t> order(tuned.tasks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) {
    return tuned.tasks[i].uses * tuned.result.tasks[i].default_seconds;
  });
  return order;
}

nlohmann::json tuned_json(const TunedModel& tuned) {
  nlohmann::json tasks = nlohmann::json::array();
  for (const std::size_t i : by_time(tuned)) {
    const tune::Task& task = tuned.tasks[i];
    const tune::TaskResult& result = tuned.result.tasks[i];
    tasks.push_back({{"key", task.key},
                     {"what", task.what},
                     {"uses", task.uses},
                     {"space", task.space.size()},
                     {"default_seconds", result.default_seconds},
                     {"default", task.space[task.usual].schedule},
                     {"trials", result.trials.size()},
                     {"known", result.known},
                     {"failed", result.failed},
                     {"ratio", result.ratio},
                     {"ratio_low", result.low},
                     {"ratio_high", result.high}});
    if (result.chosen) tasks.back()["schedule"] = task.space[*result.chosen].schedule;
  }
  nlohmann::json object = {{"target", tuned.target},
                           {"tasks", std::move(tasks)},
                           {"seconds", tuned.result.seconds},
                           {"end", tune::to_string(tuned.result.end)},
                           {"default_seconds", tuned.default_seconds()},
                           {"tuned_seconds", tuned.tuned_seconds()},
                           {"kept", tuned.kept}};
  if (tuned.comparison)
    object["whole_program"] = {{"ratio", tuned.comparison->ratio},
                               {"ratio_low", tuned.comparison->low},
                               {"ratio_high", tuned.comparison->high}};
  return object;
}

void print_tuned(const TunedModel& tuned, int rows) {
  fmt::print("{:>10} {:>6} {:>7} {:>7}  {}\n", "ms", "ratio", "trials", "space", "task");
  std::size_t trials = 0, chosen = 0;
  for (const tune::TaskResult& result : tuned.result.tasks) {
    trials += result.trials.size();
    chosen += result.chosen ? 1 : 0;
  }
  const std::vector<std::size_t> order = by_time(tuned);
  for (std::size_t row = 0; row < order.size() && static_cast<int>(row) < rows; ++row) {
    const tune::Task& task = tuned.tasks[order[row]];
    const tune::TaskResult& result = tuned.result.tasks[order[row]];
    fmt::print("{:>10.4f} {:>6.3f} {:>7} {:>7}  {} [{}]\n",
               1e3 * task.uses * result.default_seconds, result.ratio,
               result.trials.size() + result.known, task.space.size(), task.what,
               task.space[result.chosen.value_or(task.usual)].schedule);
  }
  if (static_cast<int>(order.size()) > rows)
    fmt::print("  … and {} more (--rows)\n", order.size() - static_cast<std::size_t>(rows));
  fmt::print("{} tasks, {} candidates measured in {:.1f} s ({}); {} tasks have a faster schedule\n",
             tuned.tasks.size(), trials, tuned.result.seconds, tune::to_string(tuned.result.end),
             chosen);
  fmt::print("{:.3f} ms -> {:.3f} ms in the kernels of these tasks\n",
             1e3 * tuned.default_seconds(), 1e3 * tuned.tuned_seconds());
  if (!tuned.comparison) return;
  fmt::print("whole program   {:.3f} of the default (95% CI {:.3f} to {:.3f}){}\n",
             tuned.comparison->ratio, tuned.comparison->low, tuned.comparison->high,
             tuned.kept ? "" : ": slower, the default schedules stay");
}

/// Model as it was given and what came of its tuning.
struct TuningOutcome {
  const Model& model;
  const InputShapes& shapes;
  const TunedModel& tuned;
};

/// Writes the report: the model as it is compiled with the schedules that were chosen, and how they
/// were found.
Expected<Done> report_tuning(const TuneFlags& flags, const TuningOutcome& outcome,
                             Context& context) {
  ProgressLine line(context);
  TESSERA_TRY(CompileModelOptions options, compile_options(flags.compile, context, line));
  options.keep_graph = true;
  // Tuning that was interrupted is reported too.
  if (outcome.tuned.result.end == tune::TuneResult::End::Stopped) options.code.stop = nullptr;
  TESSERA_TRY(const CompiledModel compiled, compile_model(outcome.model, outcome.shapes, options));
  line.clear();
  report::EventLog log("tune");
  TESSERA_TRY_DONE(add_model_records(log, {.model = outcome.model,
                                           .file = flags.model,
                                           .program = compiled.program,
                                           .threads = flags.compile.threads,
                                           .compiled = &compiled,
                                           .options = &options}));
  add_tuning(log, outcome.tuned, &compiled);
  return write_report(log, flags.report);
}

Expected<Done> tune_kernel_command(const TuneFlags& flags, Context& context) {
  return tune_kernel_command({.kernel = flags.model,
                              .budget = flags.budget,
                              .grid = flags.grid,
                              .arguments = flags.arguments,
                              .target = flags.compile.target,
                              .seed = flags.seed,
                              .threads = flags.compile.threads,
                              .rows = flags.rows,
                              .report = flags.report},
                             flags.compile.store, context);
}

/// GPU of this computer; this process must not use it before its workers do.
std::optional<runtime::cuda::ThisGpu> gpu_to_tune_for() {
  auto found = tune::gpu_in_worker();
  return found ? std::optional(*std::move(found)) : std::nullopt;
}

Expected<Done> tune_command(const TuneFlags& flags, Context& context) {
  if (flags.is_kernel()) return tune_kernel_command(flags, context);
  if (!flags.arguments.empty() || !flags.grid.empty())
    return Diagnostic{.id = "kernel-argument",
                      .message = "--arg and --grid are for kernels",
                      .note = "a kernel is a file of tile text, *.tile"};
  TESSERA_TRY_DONE(context.start(Limits::Program));
  TESSERA_TRY(const InputOptions given, input_options(flags.inputs, context));
  ProgressLine line(context);
  TuneModelOptions options;
  CompileFlags compile = flags.compile;
  compile.find_gpu = gpu_to_tune_for;
  TESSERA_TRY(options.compile, compile_options(compile, context, line));
  options.compile.code.progress = {};
  options.store = store_file(flags.compile.store, context);
  TESSERA_TRY(options.tune.seconds, parse_seconds(flags.budget));
  options.tune.seed = flags.seed;
  options.tune.stop = &context.stop;
  options.tune.progress = show_progress(line);
  TESSERA_TRY(const Model model, load_model(flags.model));
  TESSERA_TRY(const InputShapes shapes, input_shapes(model.graph, given));
  TESSERA_TRY(const TunedModel tuned, tune_model(model, shapes, options));
  line.clear();
  if (flags.report.is_asked())
    TESSERA_TRY_DONE(
        report_tuning(flags, {.model = model, .shapes = shapes, .tuned = tuned}, context));
  if (context.json)
    print_json(tuned_json(tuned));
  else
    print_tuned(tuned, flags.rows);
  return Done{};
}

}  // namespace

void add_tune(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "tune",
      "measures schedules of a model's kernels, or tile sizes of a kernel, on this computer or its "
      "GPU and stores the fastest");
  auto flags = std::make_shared<TuneFlags>();
  command
      ->add_option("model", flags->model,
                   "ONNX file, graph in text form, or kernel in tile text (*.tile)")
      ->required();
  command->add_option("--budget", flags->budget, "time budget, for example 60s or 5m")
      ->capture_default_str();
  command->add_option("--seed", flags->seed, "seed of the random choices")->capture_default_str();
  command
      ->add_option("--arg", flags->arguments,
                   "argument of a kernel, as for tessera kernel bench; a constant that is given is "
                   "not tuned")
      ->type_name("NAME=VALUE");
  command->add_option(
      "--grid", flags->grid,
      "launch grid of a kernel, which may use its constants: ceil_div(out.0, BLOCK)");
  add_report_flags(*command, flags->report);
  command->add_option("--rows", flags->rows, "number of tasks to show")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_size_flags(*command, flags->inputs);
  add_compile_flags(*command, flags->compile);
  add_target_flag(*command, flags->compile);
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera tune resnet50.onnx --budget 2m --threads 1\n"
      "  tessera run resnet50.onnx --threads 1 --explain\n"
      "  tessera tune resnet50.onnx --budget 1m --target cuda --precision f16\n"
      "  tessera tune add.tile --arg 'x=f32[100000]' --arg 'out=f32[100000]' --grid "
      "'ceil_div(out.0, BLOCK)'\n"
      "\n"
      "Every measurement is stored (--store), so that tuning can be continued, also after Ctrl-C.\n"
      "Compiling with the same store, target machine and number of threads uses the schedules\n"
      "that were measured to be faster than the default ones.");
  command->callback([flags, &context] {
    if (const auto done = tune_command(*flags, context); !done)
      context.fail(located(done.error(), {.file = flags->model}));
  });
}

}  // namespace tessera::cli
