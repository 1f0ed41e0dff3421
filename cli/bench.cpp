#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/json.h"
#include "cli/report.h"
#include "tessera/cost/interleaved_timing.h"
#include "tessera/driver/golden.h"
#include "tessera/driver/onnx_runtime.h"

namespace tessera::cli {
namespace {

struct BenchOptions {
  std::string model, against, baseline, python = "python3", arguments = "session";
  InputFlags inputs;
  CompileFlags compile;
  double tolerance = -1;
  cost::MeasureOptions measure;
  ReportFlags report;
};

/// Comparison of Tessera with the peer.
struct PeerComparison {
  std::string version, settings;
  cost::InterleavedTiming timing;
  double error = 0;
  std::string problem = {};
  bool agrees = true;
};

nlohmann::json percentiles_json(const std::vector<double>& times) {
  return {{"runs", times.size()},
          {"min_ms", cost::percentile(times, 0)},
          {"p50_ms", cost::percentile(times, 0.5)},
          {"p90_ms", cost::percentile(times, 0.9)},
          {"p99_ms", cost::percentile(times, 0.99)}};
}

std::string percentiles_text(const std::vector<double>& times) {
  return fmt::format("p50 {:.3f} ms, p90 {:.3f} ms, p99 {:.3f} ms ({} runs)",
                     cost::percentile(times, 0.5), cost::percentile(times, 0.9),
                     cost::percentile(times, 0.99), times.size());
}

ArgumentMemory memory_of(const BenchOptions& options) {
  return options.arguments == "heap"      ? ArgumentMemory::Heap
         : options.arguments == "tensors" ? ArgumentMemory::Tensors
                                          : ArgumentMemory::Session;
}

/// Tolerance between outputs of equivalent programs: with bf16, both round to eight bits.
double tolerance_of(const BenchOptions& options, const CompiledModel* compiled) {
  if (options.tolerance >= 0) return options.tolerance;
  const std::string_view products = compiled == nullptr
                                        ? std::string_view(options.compile.precision)
                                        : to_string(compiled->contraction_dtype);
  return products == "bf16" ? 6e-2 : products == "f16" ? 1e-2 : 1e-3;
}

Expected<PeerComparison> compare(const BenchOptions& options, const Model& model,
                                 const std::vector<Datum>& inputs, NativeRunner& native) {
  OnnxRuntimeOptions peer_options{.model = options.model,
                                  .threads = options.compile.threads,
                                  .bf16 = options.compile.precision != "f32",
                                  .python = options.python};
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_tensor()) continue;
    peer_options.input_names.push_back(model.graph.name(model.graph.inputs()[i]));
    tensors.push_back(inputs[i].tensor());
  }
  TESSERA_TRY(const std::unique_ptr<OnnxRuntimeProcess> peer,
              OnnxRuntimeProcess::start(peer_options, tensors));
  PeerComparison result{.version = peer->version(), .settings = peer->settings(), .timing = {}};
  TESSERA_TRY(const std::vector<Datum> ours, native.run());
  TESSERA_TRY(const std::vector<Tensor> theirs, peer->outputs());
  const double tolerance = tolerance_of(options, native.compiled());
  for (std::size_t i = 0; i < ours.size() && i < theirs.size(); ++i) {
    if (!ours[i].is_tensor()) continue;
    const Distance apart = distance(ours[i].tensor(), theirs[i]);
    result.error = std::max(result.error, apart.error);
    if (!apart.problem.empty()) result.problem = apart.problem;
    result.agrees = result.agrees && apart.problem.empty() && apart.error <= tolerance;
  }
  TESSERA_TRY(result.timing,
              cost::time_interleaved([&](int runs) { return native.time(runs); },
                                     [&](int runs) { return peer->time(runs); }, options.measure));
  return result;
}

/// Interleaved timing against another compiled program of the same model.
Expected<cost::InterleavedTiming> compare_with_baseline(const BenchOptions& options,
                                                        const std::vector<Datum>& inputs,
                                                        NativeRunner& native, Context& context) {
  TESSERA_TRY(const Source source, open_source(options.baseline));
  TESSERA_TRY(const std::unique_ptr<NativeRunner> baseline,
              NativeRunner::prepare(source, inputs, options.compile, context));
  baseline->place_arguments(memory_of(options));
  return cost::time_interleaved([&](int runs) { return native.time(runs); },
                                [&](int runs) { return baseline->time(runs); }, options.measure);
}

nlohmann::json against_json(const PeerComparison& against) {
  nlohmann::json object = percentiles_json(against.timing.theirs);
  object.update({{"name", "onnxruntime"},
                 {"version", against.version},
                 {"settings", against.settings},
                 {"speedup", 1 / against.timing.ratio},
                 {"ratio", against.timing.ratio},
                 {"ratio_low", against.timing.low},
                 {"ratio_high", against.timing.high},
                 {"block_ms", against.timing.their_blocks},
                 {"error", against.error},
                 {"agrees", against.agrees}});
  if (!against.problem.empty()) object["problem"] = against.problem;
  return object;
}

void print_text(const BenchOptions& options, const std::vector<double>& times,
                const std::optional<double>& on_gpu, const std::optional<PeerComparison>& against) {
  fmt::print("{}, {} thread{}\n", options.model, options.compile.threads,
             options.compile.threads == 1 ? "" : "s");
  fmt::print("tessera             {}\n", percentiles_text(times));
  if (on_gpu)
    fmt::print("on the GPU          {:.4f} ms, without copies of inputs and outputs\n", *on_gpu);
  if (!against) return;
  fmt::print("onnxruntime {:<7} {}, optimization {}\n", against->version,
             percentiles_text(against->timing.theirs), against->settings);
  fmt::print("speedup             {:.3f}x (95% CI {:.3f} to {:.3f})\n", 1 / against->timing.ratio,
             1 / against->timing.high, 1 / against->timing.low);
  fmt::print("outputs             max error {:.1e} of the RMS: {}\n", against->error,
             against->agrees            ? "PASS"
             : against->problem.empty() ? "FAIL"
                                        : "FAIL: " + against->problem);
}

report::Benchmark benchmark_record(const std::vector<double>& times,
                                   const std::optional<PeerComparison>& against) {
  report::Benchmark record{.runs = static_cast<std::int64_t>(times.size()),
                           .p50_ms = cost::percentile(times, 0.5),
                           .p90_ms = cost::percentile(times, 0.9),
                           .p99_ms = cost::percentile(times, 0.99)};
  if (!against) return record;
  record.peer = "onnxruntime " + against->version;
  record.peer_p50_ms = cost::percentile(against->timing.theirs, 0.5);
  record.speedup = 1 / against->timing.ratio;
  record.speedup_low = 1 / against->timing.high;
  record.speedup_high = 1 / against->timing.low;
  record.error = against->error;
  record.agrees = against->agrees;
  return record;
}

Expected<Done> bench(BenchOptions options, Context& context) {
  TESSERA_TRY_DONE(context.start(Limits::Program));
  if (options.inputs.fill.empty()) options.inputs.fill = "sin";
  options.measure.stop = &context.stop;
  TESSERA_TRY(const InputOptions given, input_options(options.inputs, context));
  if (!options.against.empty() &&
      (is_saved_program(options.model) || is_text_form(options.model))) {
    return Diagnostic{.id = "cli-against",
                      .message = fmt::format("{} does not read this file", options.against),
                      .help = "bench the ONNX model that it was compiled from"};
  }
  TESSERA_TRY(const Source source, open_source(options.model));
  TESSERA_TRY(const std::vector<Datum> inputs, make_inputs(source, given));
  options.compile.keep_graph = options.report.is_asked();
  TESSERA_TRY(const std::unique_ptr<NativeRunner> native,
              NativeRunner::prepare(source, inputs, options.compile, context));
  native->place_arguments(memory_of(options));
  std::optional<PeerComparison> against;
  std::optional<cost::InterleavedTiming> baseline;
  std::vector<double> times;
  if (!options.baseline.empty()) {
    TESSERA_TRY(baseline, compare_with_baseline(options, inputs, *native, context));
    times = baseline->ours;
  } else if (options.against.empty()) {
    TESSERA_TRY(times,
                cost::measure([&](int runs) { return native->time(runs); }, options.measure));
  } else {
    TESSERA_TRY(against, compare(options, source.model, inputs, *native));
    times = against->timing.ours;
  }
  if (against && !against->agrees) context.exit_code = kNegativeResult;
  TESSERA_TRY(const std::optional<double> on_gpu, native->time_steps());
  if (options.report.is_asked()) {
    TESSERA_TRY(const StepProfile profile, profile_model(*native, options.compile, {}, context));
    report::EventLog log("bench");
    TESSERA_TRY_DONE(add_measured_model(log,
                                        {.source = source,
                                         .file = options.model,
                                         .native = *native,
                                         .compile = options.compile,
                                         .profile = &profile},
                                        context));
    log.add(benchmark_record(times, against));
    TESSERA_TRY_DONE(write_report(log, options.report));
  }
  if (!context.json) {
    print_text(options, times, on_gpu, against);
    if (baseline)
      fmt::print("baseline            {}\nratio               {:.3f} (95% CI {:.3f} to {:.3f})\n",
                 percentiles_text(baseline->theirs), baseline->ratio, baseline->low,
                 baseline->high);
    return Done{};
  }
  nlohmann::json object = percentiles_json(times);
  object.update({{"model", options.model}, {"threads", options.compile.threads}});
  if (on_gpu) object.update({{"gpu_ms", *on_gpu}, {"argument_bytes", native->argument_bytes()}});
  if (native->compiled() != nullptr) object["compile"] = report_json(*native->compiled());
  if (baseline) {
    object["baseline"] = percentiles_json(baseline->theirs);
    object["baseline"].update(
        {{"ratio", baseline->ratio}, {"ratio_low", baseline->low}, {"ratio_high", baseline->high}});
  }
  if (against) {
    object["block_ms"] = against->timing.our_blocks;
    object["against"] = against_json(*against);
  }
  print_json(object);
  return Done{};
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "bench", "measures the latency of a model, optionally against another runtime");
  auto options = std::make_shared<BenchOptions>();
  command
      ->add_option("model", options->model,
                   "ONNX file, graph in text form, or compiled program (.tsr)")
      ->required();
  add_input_flags(*command, options->inputs);
  command->add_option("--against", options->against, "runtime to compare latency and outputs with")
      ->check(CLI::IsMember({"onnxruntime"}));
  command
      ->add_option("--baseline", options->baseline,
                   "compiled program (.tsr) of the same model to compare latency with, interleaved")
      ->excludes("--against");
  command->add_option("--python", options->python, "Python interpreter that has the peer installed")
      ->capture_default_str();
  command->add_option("--blocks", options->measure.blocks, "number of interleaved timing blocks")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command
      ->add_option("--block-ms", options->measure.block_ms,
                   "approximate length of a timing block in milliseconds")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option(
          "--tolerance", options->tolerance,
          "largest allowed error of the outputs, relative to their RMS (default: f32 1e-3, "
          "f16 1e-2, bf16 6e-2)")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--arguments", options->arguments,
                   "memory of inputs and outputs of the timed runs: `session`, its own; `heap`, "
                   "which is copied for a GPU; `tensors`, inputs on the heap, results made by each "
                   "run")
      ->check(CLI::IsMember({"session", "heap", "tensors"}))
      ->capture_default_str();
  add_report_flags(*command, options->report);
  add_compile_flags(*command, options->compile);
  add_target_flag(*command, options->compile);
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera bench resnet50.onnx --threads 2 --fill random:7 --against onnxruntime\n"
      "\n"
      "The peer runs in a separate process, with its fastest settings (optimization off, basic or\n"
      "all; spinning or not), which is suspended while tessera is timed. Without --fill, inputs\n"
      "are sines.");
  command->callback([options, &context] {
    if (const auto done = bench(*options, context); !done)
      context.fail(located(done.error(), {.file = options->model}));
  });
}

}  // namespace tessera::cli
