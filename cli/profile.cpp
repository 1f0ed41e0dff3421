#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/json.h"
#include "cli/native.h"
#include "cli/store_flags.h"
#include "tessera/cost/contest.h"
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

/// Start and end of one execution of a step; a step in a loop has one per iteration.
struct Span {
  int run = 0;
  std::size_t step = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

struct StepRow {
  std::size_t step = 0;
  std::string what, how;
  std::size_t calls = 0;  // in one run, the median as all that follows
  double ms = 0, share = 0, gflops = 0, gbytes = 0, of_peak = 0;
  std::optional<double> expected_ms = {};  // of the group that ends here
  bool measured = false;                   // that is a measurement
};

std::string how_of(const runtime::Program& program, std::size_t step, const CompiledModel* made) {
  if (made != nullptr && !made->report.steps[step].strategy.empty()) {
    return made->report.steps[step].strategy;
  }
  const auto* launch = std::get_if<runtime::step::Launch>(&program.steps[step]);
  return launch == nullptr ? "" : program.kernels[launch->kernel].name;
}

/// Steps with the median over runs of their total time in a run, the longest first.
std::vector<StepRow> rows_of(const runtime::Program& program, const std::vector<Span>& spans,
                             const CompiledModel* made, double peak) {
  struct Run {
    int number = 0;
    double calls = 0, ms = 0;
  };
  std::vector<std::vector<Run>> runs(program.steps.size());
  for (const Span& span : spans) {
    std::vector<Run>& of_step = runs[span.step];
    if (of_step.empty() || of_step.back().number != span.run)
      of_step.push_back({.number = span.run});
    of_step.back().calls += 1;
    of_step.back().ms += static_cast<double>(span.end_ns - span.start_ns) / 1e6;
  }
  const auto median = [](const std::vector<Run>& of_step, double Run::*what) {
    std::vector<double> values;
    for (const Run& run : of_step) values.push_back(run.*what);
    return cost::percentile(values, 0.5);
  };
  std::vector<StepRow> rows;
  double total = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].empty()) continue;
    const runtime::Program::Note& note = program.notes[i];
    StepRow row{.step = i,
                .what = note.what,
                .how = how_of(program, i, made),
                .calls = static_cast<std::size_t>(median(runs[i], &Run::calls)),
                .ms = median(runs[i], &Run::ms)};
    const double seconds = std::max(row.ms, 1e-6) / 1e3 / static_cast<double>(row.calls);
    row.gflops = note.flops / seconds / 1e9;
    row.gbytes = note.bytes / seconds / 1e9;
    row.of_peak = peak > 0 ? note.flops / seconds / peak : 0;
    total += row.ms;
    rows.push_back(std::move(row));
  }
  for (StepRow& row : rows) row.share = row.ms / std::max(total, 1e-9);
  std::ranges::stable_sort(rows, std::greater{}, &StepRow::ms);
  return rows;
}

/// Adds the cost model's estimates of the steps.
Expected<Done> add_expected(const ProfileOptions& options, Context& context, const Native& native,
                            std::vector<StepRow>& rows) {
  ProgressLine line(context);
  TESSERA_TRY(CompileModelOptions compile, compile_options(options.compile, context, line));
  compile.code.products = native.compiled()->products;
  cost::ModelOptions cost_as = cost_options(options.store, compile.code, context);
  std::error_code error;  // nothing is measured here: no store is made
  if (!std::filesystem::exists(cost_as.store, error)) cost_as.store.clear();
  TESSERA_TRY(const auto costs, cost::open_model(cost_as));
  std::map<std::size_t, const cost::Kernel*> ends;
  const cost::Estimate estimate = costs->estimate(native.program(), native.compiled()->report);
  for (const cost::Kernel& kernel : estimate.kernels)
    ends.emplace(kernel.first_step + kernel.steps - 1, &kernel);
  for (StepRow& row : rows) {
    const auto it = ends.find(row.step);
    if (it == ends.end()) continue;
    row.expected_ms = it->second->seconds * 1e3;
    row.measured = it->second->measured;
  }
  return Done{};
}

void print_table(const std::vector<StepRow>& rows, int most, double peak, int threads) {
  fmt::print("{:>5} {:>6} {:>9} {:>10} {:>6} {:>8} {:>7} {:>5}  {}\n", "step", "calls", "ms",
             "expected", "share", "GFLOP/s", "GB/s", "peak", "what");
  double total = 0, flops = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const StepRow& row = rows[i];
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

/// Trace of the last run in the format of Perfetto and chrome://tracing.
nlohmann::json trace_of(const runtime::Program& program, const std::vector<Span>& last,
                        const CompiledModel* made) {
  nlohmann::json events = nlohmann::json::array();
  const std::int64_t origin = last.empty() ? 0 : last.front().start_ns;
  for (const Span& span : last) {
    const runtime::Program::Note& note = program.notes[span.step];
    const double ns = static_cast<double>(std::max<std::int64_t>(span.end_ns - span.start_ns, 1));
    events.push_back({{"name", note.what},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", static_cast<double>(span.start_ns - origin) / 1e3},
                      {"dur", ns / 1e3},
                      {"args",
                       {{"step", span.step},
                        {"how", how_of(program, span.step, made)},
                        {"flops", note.flops},
                        {"bytes", note.bytes},
                        {"gflops", note.flops / ns}}}});
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

Expected<Done> profile(ProfileOptions options, Context& context) {
  TESSERA_TRY_DONE(context.start(Limits::Program));
  if (options.inputs.fill.empty()) options.inputs.fill = "sin";
  TESSERA_TRY(const InputOptions given, input_options(options.inputs, context));
  TESSERA_TRY(const Source source, open_source(options.model));
  TESSERA_TRY(std::vector<Datum> inputs, make_inputs(source, given));
  std::vector<Span> spans;
  int number = 0;
  const auto observe = [&](std::size_t step, std::int64_t start, std::int64_t end) {
    spans.push_back({number, step, start, end});
  };
  TESSERA_TRY(const std::unique_ptr<Native> native,
              Native::prepare(source, std::move(inputs), options.compile, context, observe));
  TESSERA_TRY_DONE(native->time(2));  // to warm up
  spans.clear();
  std::size_t last = 0;
  for (; number < options.runs && !context.stop; ++number) {
    last = spans.size();
    TESSERA_TRY_DONE(native->time(1));
  }
  const bool on_gpu = native->program().is_for_gpu();
  const double peak = on_gpu ? 0 : machine::measured_peak() * options.compile.threads;
  std::vector<StepRow> rows = rows_of(native->program(), spans, native->compiled(), peak);
  if (native->compiled() != nullptr && !on_gpu)
    TESSERA_TRY_DONE(add_expected(options, context, *native, rows));
  if (!options.trace.empty()) {
    const std::vector<Span> one(spans.begin() + static_cast<std::ptrdiff_t>(last), spans.end());
    const nlohmann::json trace = trace_of(native->program(), one, native->compiled());
    TESSERA_TRY_DONE(write_file(options.trace, [&](std::ostream& out) { out << trace; }));
  }
  if (!context.json) {
    print_table(rows, options.rows, peak, options.compile.threads);
    return Done{};
  }
  nlohmann::json list = nlohmann::json::array();
  for (const StepRow& row : rows) {
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
