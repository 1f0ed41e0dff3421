#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/json.h"
#include "cli/report.h"
#include "tessera/driver/step_profile.h"
#include "tessera/support/file.h"

namespace tessera::cli {
namespace {

struct ProfileOptions {
  std::string model, trace;
  InputFlags inputs;
  CompileFlags compile;
  ProfileFlags profile;
  ReportFlags report;
  int rows = 40;
};

void print_table(const StepProfile& profile, int most, int threads) {
  const std::vector<StepTime>& rows = profile.steps;
  const double peak = profile.peak;
  fmt::print("{:>5} {:>6} {:>9} {:>10} {:>6} {:>8} {:>7} {:>5}  {}\n", "step", "calls", "ms",
             "expected", "share", "GFLOP/s", "GB/s", "peak", "what");
  const double total = profile.ms;
  double flops = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const StepTime& row = rows[i];
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
  fmt::print("{:>5} {:>6} {:>9.4f}\n", "rest", "", profile.between_ms);
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
  options.compile.keep_graph = options.report.is_asked();
  TESSERA_TRY(const std::unique_ptr<NativeRunner> native,
              NativeRunner::prepare(source, std::move(inputs), options.compile, context));
  TESSERA_TRY(const StepProfile profile,
              profile_model(*native, options.compile, options.profile, context));
  if (!options.trace.empty()) {
    const std::string trace = trace_json(native->program(), profile.last_run);
    TESSERA_TRY_DONE(write_file(options.trace, [&](std::ostream& out) { out << trace; }));
  }
  if (options.report.is_asked()) {
    report::EventLog log("profile");
    TESSERA_TRY_DONE(add_measured_model(log,
                                        {.source = source,
                                         .file = options.model,
                                         .native = *native,
                                         .compile = options.compile,
                                         .profile = &profile},
                                        context));
    TESSERA_TRY_DONE(write_report(log, options.report));
  }
  if (!context.json) {
    print_table(profile, options.rows, options.compile.threads);
    return Done{};
  }
  nlohmann::json list = nlohmann::json::array();
  for (const StepTime& row : profile.steps) {
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
  print_json({{"steps", std::move(list)},
              {"ms", profile.ms},
              {"between_ms", profile.between_ms},
              {"peak_gflops", profile.peak / 1e9}});
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
  command->add_option("--runs", options->profile.runs, "number of runs")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--rows", options->rows, "number of steps to show")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_measured_on_flag(*command, options->compile.store);
  add_report_flags(*command, options->report);
  add_compile_flags(*command, options->compile);
  add_target_flag(*command, options->compile);
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera profile resnet50.onnx --threads 1 -o trace.json\n"
      "  tessera profile resnet50.onnx --report page.html\n"
      "\n"
      "Times are means over the middle half of the runs, of all executions of a step in a run; a\n"
      "step in a loop is executed in every iteration. They add up to a whole run with the time\n"
      "between steps (rest). The peak is that of f32 multiply-adds, measured in registers.\n"
      "Expected times are from the store of measurements or, with ~, from the roofline model.");
  command->callback([options, &context] {
    if (const auto done = profile(*options, context); !done)
      context.fail(located(done.error(), {.file = options->model}));
  });
}

}  // namespace tessera::cli
