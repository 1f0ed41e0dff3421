#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/native_runner.h"
#include "tessera/driver/check_steps.h"
#include "tessera/driver/expected_outputs.h"
#include "tessera/interp/interp.h"
#include "tessera/support/file.h"
#include "tessera/support/npy.h"
#include "tessera/support/stopwatch.h"

namespace tessera::cli {
namespace {

struct RunOptions {
  std::string model, engine = "native", save, golden, save_golden;
  InputFlags inputs;
  CompileFlags compile;
  double tolerance = 1e-4;
  bool check_steps = false;
  int repeat = 1;
};

Expected<Done> save_outputs(const Model& model, const std::vector<Datum>& outputs,
                            const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_tensor())
      return Diagnostic{.id = "run-save",
                        .where = {.item = model.output_names[i]},
                        .message = "only tensors are saved"};
    const auto path = std::filesystem::path(folder) / (file_name(model.output_names[i]) + ".npy");
    TESSERA_TRY_DONE(write_npy(path, outputs[i].tensor()));
  }
  return Done{};
}

/// Saves samples of the outputs for later comparisons.
Expected<Done> save_golden(const Model& model, const std::vector<Datum>& outputs,
                           const InputOptions& given, const RunOptions& options) {
  constexpr std::int64_t kSamples = 256;  // as many as the goldens of our models have
  Golden golden{.dims = given.dims,
                .producer = "tessera " TESSERA_VERSION,
                .inputs = options.inputs.fill.empty() ? "files" : "--fill " + options.inputs.fill};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_tensor())
      return Diagnostic{.id = "run-save",
                        .where = {.item = model.output_names[i]},
                        .message = "only tensors are saved"};
    golden.outputs[model.output_names[i]] = golden_of(outputs[i].tensor(), kSamples);
  }
  return write_golden(golden, options.save_golden);
}

struct ComparisonRow {
  std::string name;
  std::string type;
  std::optional<Distance> distance;
};

Expected<std::vector<ComparisonRow>> compare(const Model& model, const std::vector<Datum>& outputs,
                                             const std::optional<Golden>& golden) {
  std::vector<ComparisonRow> rows;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    ComparisonRow row{
        .name = model.output_names[i], .type = "sequence or optional", .distance = {}};
    if (outputs[i].is_tensor()) {
      const Tensor& tensor = outputs[i].tensor();
      row.type = to_string(Type::tensor(tensor.dtype, {tensor.shape.begin(), tensor.shape.end()}));
    }
    if (golden) {
      const auto it = golden->outputs.find(row.name);
      if (it == golden->outputs.end() && golden->outputs.size() == outputs.size())
        row.distance = Distance{.problem = "the golden file has no such output"};
      else if (it != golden->outputs.end())
        row.distance = outputs[i].is_tensor() ? distance(outputs[i].tensor(), it->second)
                                              : Distance{.problem = "it is not a tensor"};
    }
    rows.push_back(std::move(row));
  }
  if (golden)
    for (const auto& expected : golden->outputs)
      if (std::ranges::find(rows, expected.first, &ComparisonRow::name) == rows.end())
        rows.push_back({.name = expected.first,
                        .type = "missing",
                        .distance = Distance{.problem = "the model has no such output"}});
  return rows;
}

/// Outputs of a run, its times, and the compilation report.
struct RunResult {
  std::vector<Datum> outputs = {};
  double seconds = 0, load_seconds = 0;
  std::unique_ptr<NativeRunner> native = {};
  std::optional<StepCheckReport> steps = {};
};

/// Tolerances of --check-steps, relative to the largest element: a launch sums in another order
/// than its tile program, and may round factors.
constexpr double kSameSteps = 1e-4, kSameRoundedSteps = 3e-2;

void print_steps(const StepCheckReport& report) {
  for (const StepCheckReport::Difference& difference : report.differences) {
    const bool whole = difference.step == StepCheckReport::kWhole;
    fmt::print("FAIL: {}{}\n", whole ? "" : fmt::format("step {}: ", difference.step),
               difference.what);
  }
  fmt::print("{} launches {}: {}\n", report.launches,
             report.interpreted ? "interpreted, as there is no GPU here" : "compared one by one",
             report.differences.empty() ? "PASS" : "FAIL");
}

nlohmann::json steps_json(const StepCheckReport& report) {
  nlohmann::json differences = nlohmann::json::array();
  for (const StepCheckReport::Difference& difference : report.differences) {
    nlohmann::json entry = {{"what", difference.what}};
    if (difference.step != StepCheckReport::kWhole) entry["step"] = difference.step;
    differences.push_back(std::move(entry));
  }
  return {{"launches", report.launches},
          {"interpreted", report.interpreted},
          {"differences", std::move(differences)}};
}

void print(const std::vector<ComparisonRow>& rows, const RunOptions& options, const RunResult& ran,
           Context& context) {
  bool agrees = true;
  nlohmann::json list = nlohmann::json::array();
  for (const ComparisonRow& row : rows) {
    nlohmann::json entry = {{"name", row.name}, {"type", row.type}};
    std::string verdict;
    if (row.distance) {
      const bool within = row.distance->within(options.tolerance);
      agrees = agrees && within;
      entry["within"] = within;
      if (row.distance->problem.empty()) {
        entry["error"] = row.distance->error;
        entry["mean_error"] = row.distance->mean_error;
        entry["l2_error"] = row.distance->l2_error;
        verdict = fmt::format("  max error {:.2e} of the RMS, mean {:.2e}, L2 {:.2e}: {}",
                              row.distance->error, row.distance->mean_error, row.distance->l2_error,
                              within ? "PASS" : "FAIL");
      } else {
        entry["problem"] = row.distance->problem;
        verdict = "  FAIL: " + row.distance->problem;
      }
    }
    list.push_back(std::move(entry));
    if (!context.json) fmt::print("{}: {}{}\n", row.name, row.type, verdict);
  }
  if (context.json) {
    nlohmann::json object = {{"outputs", std::move(list)}, {"seconds", ran.seconds}};
    if (ran.native) object["load_seconds"] = ran.load_seconds;
    if (ran.native && ran.native->compiled() != nullptr) {
      object["compile"] = report_json(*ran.native->compiled());
    }
    if (ran.steps) object["steps"] = steps_json(*ran.steps);
    if (!options.golden.empty()) {
      object["tolerance"] = options.tolerance;
      object["agrees"] = agrees;
    }
    fmt::print("{}\n", object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    if (ran.native && ran.native->compiled() != nullptr) {
      if (options.compile.passes.explain) print_report(*ran.native->compiled(), options.compile);
      fmt::print("{}", summary(*ran.native->compiled()));
    }
    if (ran.steps) print_steps(*ran.steps);
    fmt::print("{:.3f} s\n", ran.seconds);
  }
  if (!agrees || (ran.steps && !ran.steps->differences.empty()))
    context.exit_code = kNegativeResult;
}

/// Runs the model by the reference interpreter.
Expected<RunResult> run_reference(const RunOptions& options, const Model& model,
                                  const std::vector<Datum>& inputs, std::int64_t memory,
                                  Context& context) {
  ProgressLine line(context);
  RunResult ran;
  const Stopwatch watch;
  TESSERA_TRY(ran.outputs, interp::run(model.graph, inputs,
                                       {.threads = options.compile.threads,
                                        .memory_limit = memory,
                                        .max_iterations = context.max_iterations(),
                                        .stop = &context.stop,
                                        .progress = [&](const interp::Progress& progress) {
                                          line.show(progress.done, progress.nodes, progress.op);
                                        }}));
  ran.seconds = watch.seconds();
  return ran;
}

Expected<RunResult> run_native(const RunOptions& options, const Source& source,
                               const std::vector<Datum>& inputs, Context& context) {
  RunResult ran;
  const Stopwatch watch;
  TESSERA_TRY(ran.native, NativeRunner::prepare(source, inputs, options.compile, context));
  ran.load_seconds = source.seconds + watch.seconds();
  const Stopwatch prepared;
  TESSERA_TRY(ran.outputs, ran.native->run());
  ran.seconds = prepared.seconds();
  for (int run = 2; run <= options.repeat; ++run) {
    TESSERA_TRY(const std::vector<Datum> again, ran.native->run());
    for (std::size_t i = 0; i < again.size(); ++i)
      if (again[i].is_tensor() && again[i].tensor().dtype != DType::String &&
          !std::ranges::equal(again[i].tensor().bytes.view(), ran.outputs[i].tensor().bytes.view()))
        return Diagnostic{.id = "run-not-repeatable",
                          .where = {.item = source.model.output_names[i]},
                          .message = fmt::format("run {} differs from the first", run),
                          .help = "find the step with --check-steps"};
  }
  return ran;
}

/// Checks every launch against its tile program, and several runs against each other.
Expected<RunResult> run_steps(const RunOptions& options, const Source& source,
                              const std::vector<Datum>& inputs, Context& context) {
  if (source.program)
    return Diagnostic{.id = "cli-saved-program",
                      .message = "--check-steps needs the tile programs of a model",
                      .help = "run the model itself"};
  ProgressLine line(context);
  TESSERA_TRY(const CompileModelOptions compile, compile_options(options.compile, context, line));
  TESSERA_TRY(const CompiledModel compiled,
              compile_model(source.model, shapes_of(inputs), compile));
  StepCheckOptions check;
  check.run = execution_options(options.compile, context);
  check.tolerance = options.compile.precision == "f32" ? kSameSteps : kSameRoundedSteps;
  check.progress = [&](std::size_t done, std::size_t all, const std::string& what) {
    line.show(done, all, what);
  };
  RunResult ran;
  const Stopwatch watch;
  TESSERA_TRY(StepCheckReport report, check_steps(compiled, inputs, check));
  line.clear();
  ran.seconds = watch.seconds();
  ran.outputs = std::move(report.outputs);
  ran.steps = std::move(report);
  return ran;
}

Expected<Done> run_model(const RunOptions& options, Context& context) {
  const bool native = options.engine == "native";
  if (is_saved_program(options.model) && !native) {
    return Diagnostic{.id = "cli-engine", .message = "a saved program is machine code already"};
  }
  TESSERA_TRY_DONE(context.start(native ? Limits::Program : Limits::Process));
  TESSERA_TRY(InputOptions given, input_options(options.inputs, context));
  TESSERA_TRY(const Source source, open_source(options.model));
  const Model& model = source.model;
  std::optional<Golden> golden;
  std::vector<Datum> inputs;
  if (!options.golden.empty()) {
    const std::size_t count = model.graph.inputs().size();
    TESSERA_TRY(ExpectedOutputs expected,
                read_expected_outputs(options.golden, {options.model, count, model.output_names}));
    golden = std::move(expected.golden);
    const bool others_given = !options.inputs.fill.empty() || !options.inputs.files.empty();
    if (!others_given && !expected.inputs.empty()) {
      inputs = std::move(expected.inputs);
      inputs.resize(count);  // trailing optional ones may be left out
    }
    const std::set<std::string> symbols = symbolic_dimensions(model.graph);
    for (const auto& [name, size] : golden->dims)
      if (symbols.contains(name)) given.dims.emplace(name, size);
  }
  std::int64_t memory = given.memory_limit;
  if (inputs.empty()) {
    TESSERA_TRY(inputs, make_inputs(source, given));
    for (std::size_t i = 0; i < inputs.size(); ++i)  // those from files are mapped
      if (!given.files.contains(model.graph.name(model.graph.inputs()[i])))
        memory -= static_cast<std::int64_t>(inputs[i].tensor().bytes.size());
  }

  TESSERA_TRY(const RunResult ran, !native ? run_reference(options, model, inputs, memory, context)
                                   : options.check_steps
                                       ? run_steps(options, source, inputs, context)
                                       : run_native(options, source, inputs, context));
  if (!options.save.empty()) TESSERA_TRY_DONE(save_outputs(model, ran.outputs, options.save));
  if (!options.save_golden.empty())
    TESSERA_TRY_DONE(save_golden(model, ran.outputs, given, options));
  TESSERA_TRY(const std::vector<ComparisonRow> rows, compare(model, ran.outputs, golden));
  print(rows, options, ran, context);
  return Done{};
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("run", "runs a model and optionally compares its outputs");
  auto options = std::make_shared<RunOptions>();
  command
      ->add_option("model", options->model,
                   "ONNX file, graph in text form, or compiled program (.tsr)")
      ->required();
  command
      ->add_option("--engine", options->engine,
                   "native: compiled; reference: interpreted by the definitions of the operators")
      ->check(CLI::IsMember({"native", "reference"}))
      ->capture_default_str();
  add_input_flags(*command, options->inputs);
  command->add_option("--save", options->save, "folder for the outputs, as .npy files");
  command->add_option("--save-golden", options->save_golden,
                      "JSON file for samples of the outputs, for --compare");
  command->add_option("--compare", options->golden,
                      "expected outputs: a file of --save-golden, a folder of --save, or ONNX's "
                      "test_data_set_N, whose inputs are the default");
  command->add_option("--tolerance", options->tolerance, "largest allowed error of the outputs")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--repeat", options->repeat, "number of runs, which have to be bit-identical")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag(
      "--check-steps", options->check_steps,
      "check every kernel launch against the interpreter, and runs against each other");
  add_compile_flags(*command, options->compile);
  add_target_flag(*command, options->compile);
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera run bert.onnx --fill sin --set batch=2 --compare bert.golden.json\n"
      "  tessera run bert.onnx --fill sin --set batch=2 --engine reference --save-golden new.json\n"
      "  tessera run test_relu/model.onnx --compare test_relu/test_data_set_0\n"
      "\n"
      "--fill sin: a float is sin(i) of its flat index i, an integer i % 1000, or less where it "
      "is\n"
      "an index of a shorter axis.\n"
      "--compare: with rms = l2 / sqrt(count), the largest |y - g| / rms over the samples, the\n"
      "difference of the means over rms and the relative difference of l2 stay within the "
      "tolerance.");
  command->callback([options, &context] {
    if (const auto done = run_model(*options, context); !done)
      context.fail(located(done.error(), {.file = options->model}));
  });
}

}  // namespace tessera::cli
