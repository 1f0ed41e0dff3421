#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/json.h"
#include "cli/native_runner.h"
#include "cli/store_flags.h"
#include "tessera/driver/step_profile.h"
#include "tessera/machine/peak.h"
#include "tessera/support/file.h"

namespace tessera::cli {
namespace {

struct ProfileOptions {
  std::string model, trace;
  InputFlags inputs;
  CompileFlags compile;
  StoreFlags store;
  int runs = 20, rows = 40;
};

/// Adds the cost model's estimates of the steps.
Expected<Done> add_expected(const ProfileOptions& options, Context& context,
                            const NativeRunner& native, std::vector<StepTime>& rows) {
  ProgressLine line(context);
  TESSERA_TRY(CompileModelOptions compile, compile_options(options.compile, context, line));
  compile.code.contraction_dtype = native.compiled()->contraction_dtype;
  cost::ModelOptions cost_as = cost_options(options.store, compile.code, context);
  std::error_code error;  // nothing is measured here: no store is made
  if (!std::filesystem::exists(cost_as.store, error)) cost_as.store.clear();
  TESSERA_TRY(const auto costs, cost::open_model(cost_as));
  std::map<std::size_t, const cost::Kernel*> ends;
  const cost::Estimate estimate = costs->estimate(native.program(), native.compiled()->report);
  for (const cost::Kernel& kernel : estimate.kernels)
    ends.emplace(kernel.first_step + kernel.steps - 1, &kernel);
  for (StepTime& row : rows) {
    const auto it = ends.find(row.step);
    if (it == ends.end()) continue;
    row.expected_ms = it->second->seconds * 1e3;
    row.measured = it->second->measured;
  }
  return Done{};
}

void print_table(const std::vector<StepTime>& rows, int most, double peak, int threads) {
  fmt::print("{:>5} {:>6} {:>9} {:>10} {:>6} {:>8} {:>7} {:>5}  {}\n", "step", "calls", "ms",
             "expected", "share", "GFLOP/s", "GB/s", "peak", "what");
  double total = 0, flops = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const StepTime& row = rows[i];
    total += row.ms;
    flops += row.gflops * row.ms / 1e3;
    if (static_cast<int>(i) >= most) continue;
    const std::string expected =
        row.expected_ms ? fmt::format("{}{:.4f}", row.measured ? "" : "~", *row.expected_ms) : "";
    fmt::print("{:>5} {:>6} {:>9.4f} {:>10} {:>5.1f}% {:>8.1f} {:>7.1f} {:>4.0f}%  {}{}\n",
               row.step, row.calls, row.ms, expected, 100 * row.share, row.gflops, row.gbytes,
               100 * row.of_peak, row.what, row.how.empty() ? "" : " [" + row.how + "]");
  }
  if (static_cast<int>(rows.size()) > most) {
    fmt::print("  … and {} more (--rows)\n", rows.size() - static_cast<std::size_t>(most));
  }
  if (peak == 0) {
    fmt::print("{:>5} {:>6} {:>9.4f} {:>10}        {:>8.1f}  on a GPU\n", "all", "", total, "",
               flops / total * 1e3);
    return;
  }
  fmt::print(
      "{:>5} {:>6} {:>9.4f} {:>10}        {:>8.1f}         {:>4.0f}%  of {:.1f} GFLOP/s on {} "
      "thread{}\n",
      "all", "", total, "", flops / total * 1e3, 100 * flops / total * 1e12 / peak, peak / 1e9,
      threads, threads == 1 ? "" : "s");
}

Expected<Done> profile(ProfileOptions options, Context& context) {
  TESSERA_TRY_DONE(context.start(Limits::Program));
  if (options.inputs.fill.empty()) options.inputs.fill = "sin";
  TESSERA_TRY(const InputOptions given, input_options(options.inputs, context));
  TESSERA_TRY(const Source source, open_source(options.model));
  TESSERA_TRY(std::vector<Datum> inputs, make_inputs(source, given));
  std::vector<StepSpan> spans;
  int number = 0;
  const auto observe = [&](std::size_t step, std::int64_t start, std::int64_t end) {
    spans.push_back({number, step, start, end});
  };
  TESSERA_TRY(const std::unique_ptr<NativeRunner> native,
              NativeRunner::prepare(source, std::move(inputs), options.compile, context, observe));
  TESSERA_TRY_DONE(native->time(2));  // to warm up
  spans.clear();
  std::size_t last = 0;
  for (; number < options.runs && !context.stop; ++number) {
    last = spans.size();
    TESSERA_TRY_DONE(native->time(1));
  }
  const bool on_gpu = native->program().is_for_gpu();
  const double peak = on_gpu ? 0 : machine::measured_peak() * options.compile.threads;
  std::vector<StepTime> rows = step_times(native->program(), spans, native->compiled(), peak);
  if (native->compiled() != nullptr && !on_gpu)
    TESSERA_TRY_DONE(add_expected(options, context, *native, rows));
  if (!options.trace.empty()) {
    const std::string trace =
        trace_json(native->program(), std::span(spans).subspan(last), native->compiled());
    TESSERA_TRY_DONE(write_file(options.trace, [&](std::ostream& out) { out << trace; }));
  }
  if (!context.json) {
    print_table(rows, options.rows, peak, options.compile.threads);
    return Done{};
  }
  nlohmann::json list = nlohmann::json::array();
  for (const StepTime& row : rows) {
    list.push_back({{"step", row.step},
                    {"what", row.what},
                    {"how", row.how},
                    {"calls", row.calls},
                    {"ms", row.ms},
                    {"share", row.share},
                    {"gflops", row.gflops},
                    {"gbytes_per_second", row.gbytes},
                    {"of_peak", row.of_peak}});
    if (!row.expected_ms) continue;
    list.back()["expected_ms"] = *row.expected_ms;
    list.back()["expected_from"] = row.measured ? "store" : "roofline";
  }
  print_json({{"steps", std::move(list)}, {"peak_gflops", peak / 1e9}});
  return Done{};
}

}  // namespace

void add_profile(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("profile", "measures the time of each step of a model");
  auto options = std::make_shared<ProfileOptions>();
  command
      ->add_option("model", options->model,
                   "ONNX file, graph in text form, or compiled program (.tsr)")
      ->required();
  command->add_option("-o,--out", options->trace,
                      "trace file for Perfetto (ui.perfetto.dev), JSON");
  add_input_flags(*command, options->inputs);
  command->add_option("--runs", options->runs, "number of runs")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--rows", options->rows, "number of steps to show")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_store_flags(*command, options->store);
  add_compile_flags(*command, options->compile);
  add_target_flag(*command, options->compile);
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera profile resnet50.onnx --threads 1 -o trace.json\n"
      "\n"
      "Times are medians over runs of the total time of a step in a run; a step in a loop is\n"
      "executed in every iteration. The peak is that of f32 multiply-adds, measured in registers.\n"
      "Expected times are from the store of measurements or, with ~, from the roofline model.");
  command->callback([options, &context] {
    if (const auto done = profile(*options, context); !done)
      context.fail(located(done.error(), {.file = options->model}));
  });
}

}  // namespace tessera::cli
