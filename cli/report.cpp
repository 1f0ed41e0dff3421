#include "cli/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/json.h"
#include "tessera/driver/event_records.h"
#include "tessera/machine/peak.h"
#include "tessera/report/compare.h"
#include "tessera/report/page.h"
#include "tessera/support/file.h"

namespace tessera::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> files;
  std::string page, events;
  InputFlags inputs;
  CompileFlags compile;
  ProfileFlags profile;
  int rows = 20;
};

/// Adds the cost model's estimates of the steps.
Expected<Done> add_expected(const NativeRunner& native, const CompileFlags& flags,
                            const StoreFlags& store, Context& context,
                            std::vector<StepTime>& rows) {
  ProgressLine line(context);
  TESSERA_TRY(CompileModelOptions compile, compile_options(flags, context, line));
  compile.code.contraction_dtype = native.compiled()->contraction_dtype;
  cost::ModelOptions cost_as = cost_options(store, compile.code, context);
  cost_as.store = existing_store(store, context);  // nothing is measured here: no store is made
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

/// Event log of a model or of a saved program: compiled, run and timed now.
Expected<report::EventLog> measured_log(const ReportOptions& options, const std::string& file,
                                        Context& context) {
  InputFlags inputs = options.inputs;
  if (inputs.fill.empty()) inputs.fill = "sin";
  TESSERA_TRY(const InputOptions given, input_options(inputs, context));
  TESSERA_TRY(const Source source, open_source(file));
  TESSERA_TRY(std::vector<Datum> data, make_inputs(source, given));
  TESSERA_TRY(const std::unique_ptr<NativeRunner> native,
              NativeRunner::prepare(source, std::move(data), options.compile, context));
  TESSERA_TRY(const StepProfile profile,
              profile_model(*native, options.compile, options.profile, context));
  report::EventLog log("report");
  TESSERA_TRY_DONE(add_measured_model(log,
                                      {.source = source,
                                       .file = file,
                                       .native = *native,
                                       .compile = options.compile,
                                       .profile = &profile},
                                      context));
  return log;
}

/// Event log of a file: a log, a page, a saved program or a model.
Expected<report::EventLog> log_of(const ReportOptions& options, const std::string& file,
                                  Context& context) {
  const std::filesystem::path path(file);
  auto log = [&]() -> Expected<report::EventLog> {
    if (path.extension() != ".jsonl" && path.extension() != ".html")
      return measured_log(options, file, context);
    TESSERA_TRY(const std::string text, read_text(path));
    return path.extension() == ".html" ? report::event_log_of_page(text)
                                       : report::parse_event_log(text);
  }();
  if (!log) return located(std::move(log).error(), {.file = file});
  return log;
}

std::string label_of(const report::Step& step) {
  return step.names.empty() ? step.what : fmt::format("{} [{}]", step.names[0], step.what);
}

void print_slowest(const report::EventLog& log, int most) {
  std::map<std::int64_t, const report::Step*> steps;
  for (const auto* step : log.all<report::Step>()) steps[step->id] = step;
  if (const auto* run = log.last<report::Run>())
    fmt::print("{:>10.4f} ms  a run, of which {:.4f} ms between steps\n", run->ms, run->between_ms);
  int row = 0;
  for (const auto* time : log.all<report::StepTime>())
    if (const auto step = steps.find(time->step); step != steps.end() && row++ < most)
      fmt::print("{:>10.4f} ms  step {}: {}\n", time->ms, time->step, label_of(*step->second));
}

nlohmann::json differences_json(const std::vector<report::Difference>& differences) {
  nlohmann::json list = nlohmann::json::array();
  for (const report::Difference& entry : differences)
    list.push_back({{"names", entry.names},
                    {"a_ms", entry.a_ms},
                    {"b_ms", entry.b_ms},
                    {"a_how", entry.a_how},
                    {"b_how", entry.b_how}});
  return list;
}

/// Says that a log has no times, if it has none.
void note_missing_times(const report::EventLog& log, const std::string& file) {
  if (log.last<report::StepTime>() != nullptr) return;
  print_error(fmt::format(
      "note: {} has no times; `tessera profile` and `tessera report` measure them\n", file));
}

void print_differences(const std::vector<report::Difference>& differences, int most) {
  double a = 0, b = 0;
  for (const report::Difference& entry : differences) a += entry.a_ms, b += entry.b_ms;
  fmt::print("{:>10} {:>10} {:>10}  nodes\n", "first ms", "second ms", "change");
  int row = 0;
  for (const report::Difference& entry : differences) {
    if (row++ >= most) break;
    fmt::print("{:>10.4f} {:>10.4f} {:>+10.4f}  {}{}\n", entry.a_ms, entry.b_ms,
               entry.b_ms - entry.a_ms, entry.names.empty() ? "" : entry.names[0],
               entry.a_how == entry.b_how ? "" : ": " + entry.a_how + " -> " + entry.b_how);
  }
  fmt::print("{:>10.4f} {:>10.4f} {:>+10.4f}  all steps\n", a, b, b - a);
}

Expected<Done> report_files(const ReportOptions& options, Context& context) {
  TESSERA_TRY_DONE(context.start(Limits::Program));
  TESSERA_TRY(const report::EventLog log, log_of(options, options.files[0], context));
  if (options.files.size() == 1) {
    TESSERA_TRY_DONE(write_report(log, {.page = options.page, .events = options.events}));
    if (context.json)
      print_json({{"records", log.records.size()}, {"page", options.page}});
    else
      print_slowest(log, options.rows);
    return Done{};
  }
  TESSERA_TRY(const report::EventLog other, log_of(options, options.files[1], context));
  const std::vector<report::Difference> differences = report::compare(log, other);
  note_missing_times(log, options.files[0]);
  note_missing_times(other, options.files[1]);
  if (!options.page.empty())
    TESSERA_TRY_DONE(
        write_file(options.page, [&](std::ostream& out) { out << report::page(log, &other); }));
  if (!options.events.empty()) {
    report::EventLog both = log;
    for (const report::Difference& entry : differences) both.add(entry);
    TESSERA_TRY_DONE(write_report(both, {.events = options.events}));
  }
  if (context.json)
    print_json({{"differences", differences_json(differences)}, {"page", options.page}});
  else
    print_differences(differences, options.rows);
  return Done{};
}

}  // namespace

void add_report_flags(CLI::App& command, ReportFlags& flags) {
  command.add_option("--report", flags.page, "write a report, one HTML page, to this file");
  command.add_option("--events", flags.events,
                     "write the event log of the report, JSON lines, to this file");
}

Expected<Done> write_report(const report::EventLog& log, const ReportFlags& flags) {
  if (!flags.events.empty())
    TESSERA_TRY_DONE(
        write_file(flags.events, [&](std::ostream& out) { out << report::to_json_lines(log); }));
  if (!flags.page.empty())
    TESSERA_TRY_DONE(write_file(flags.page, [&](std::ostream& out) { out << report::page(log); }));
  return Done{};
}

Expected<StepProfile> profile_model(const NativeRunner& native, const CompileFlags& compile,
                                    const ProfileFlags& flags, Context& context) {
  TESSERA_TRY(const ProfiledRuns runs,
              profile_runs(native.runnable(), native.inputs(), execution_options(compile, context),
                           flags.runs));
  const runtime::Program& program = native.program();
  const double peak = program.is_for_gpu() ? 0 : machine::measured_peak() * compile.threads;
  StepProfile profile = step_profile(program, runs, peak);
  if (native.compiled() != nullptr && !program.is_for_gpu())
    TESSERA_TRY_DONE(add_expected(native, compile, compile.store, context, profile.steps));
  return profile;
}

Expected<Done> add_measured_model(report::EventLog& log, const MeasuredModel& model,
                                  Context& context) {
  ProgressLine line(context);
  TESSERA_TRY(const CompileModelOptions options, compile_options(model.compile, context, line));
  return add_model_records(log, {.model = model.source.model,
                                 .file = model.file,
                                 .program = model.native.program(),
                                 .threads = model.compile.threads,
                                 .compiled = model.native.compiled(),
                                 .options = model.native.compiled() == nullptr ? nullptr : &options,
                                 .profile = model.profile});
}

void add_report(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "report", "shows on one page what was changed in a model, why that is right, and its times");
  auto options = std::make_shared<ReportOptions>();
  command
      ->add_option("files", options->files,
                   "event log (.jsonl), report (.html), compiled program (.tsr) or model; of two "
                   "files, the differences")
      ->required()
      ->expected(1, 2);
  command->add_option("-o,--out", options->page, "output file, an HTML page");
  command->add_option("--events", options->events, "output file for the event log, JSON lines");
  add_input_flags(*command, options->inputs);
  command->add_option("--runs", options->profile.runs, "number of runs of a program or model")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--rows", options->rows, "number of steps to print")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_measured_on_flag(*command, options->compile.store);
  add_compile_flags(*command, options->compile);
  add_target_flag(*command, options->compile);
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera report model.onnx -o page.html\n"
      "  tessera report before.tsr after.tsr -o differences.html\n"
      "  tessera compile model.onnx --events events.jsonl && tessera report events.jsonl -o "
      "p.html\n"
      "\n"
      "A model is compiled, and models and programs are run and timed now, on sines without\n"
      "--fill or --input. Pages need no network and no other files. docs/report.md has more.");
  command->callback([options, &context] {
    options->compile.keep_graph = true;
    if (const auto done = report_files(*options, context); !done) context.fail(done.error());
  });
}

}  // namespace tessera::cli
