#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/context.h"
#include "tessera/driver/golden.h"
#include "tessera/driver/inputs.h"
#include "tessera/driver/model.h"
#include "tessera/driver/native.h"
#include "tessera/interp/interp.h"
#include "tessera/support/file.h"
#include "tessera/support/npy.h"

namespace tessera::cli {
namespace {

struct Options {
  std::string model, engine = "interp", fill, save, golden, cache;
  std::vector<std::string> inputs, dims, shapes;
  double tolerance = 1e-4;
  bool native = false;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
};

/// `NAME=VALUE`, split at the last `=`: names may hold one, values do not.
Expected<std::pair<std::string, std::string>> assignment(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return Diagnostic{.id = "cli-assignment",
                      .message = fmt::format("'{}' is not NAME=VALUE", text)};
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

Expected<std::int64_t> size_of(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0)
    return Diagnostic{.id = "cli-size", .message = fmt::format("'{}' is not a size", text)};
  return value;
}

Expected<InputOptions> input_options(const Options& options) {
  InputOptions result;
  for (const std::string& text : options.inputs) {
    // A path may hold '=' too; the name of an input hardly does.
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Diagnostic{.id = "cli-assignment",
                        .message = fmt::format("'{}' is not NAME=FILE.npy", text)};
    result.files[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const std::string& text : options.dims) {
    TESSERA_TRY(const auto pair, assignment(text));
    TESSERA_TRY(result.dims[pair.first], size_of(pair.second));
  }
  for (const std::string& text : options.shapes) {
    TESSERA_TRY(const auto pair, assignment(text));
    std::vector<std::int64_t>& shape = result.shapes[pair.first];
    if (pair.second == "scalar") continue;
    for (std::size_t begin = 0; begin <= pair.second.size();) {
      const std::size_t end = std::min(pair.second.find('x', begin), pair.second.size());
      TESSERA_TRY(const std::int64_t extent, size_of(pair.second.substr(begin, end - begin)));
      shape.push_back(extent);
      begin = end + 1;
    }
  }
  if (options.fill == "sin") {
    result.fill = InputOptions::Fill::Sin;
  } else if (options.fill.starts_with("random:")) {
    result.fill = InputOptions::Fill::Random;
    TESSERA_TRY(const std::int64_t seed, size_of(options.fill.substr(7)));
    result.seed = static_cast<std::uint64_t>(seed);
  } else if (!options.fill.empty()) {
    return Diagnostic{.id = "cli-fill",
                      .message = fmt::format("'{}' is no way to fill an input", options.fill),
                      .note = "sin and random:SEED are"};
  }
  return result;
}

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

struct Row {
  std::string name;
  std::string type;
  std::optional<Distance> distance;
};

Expected<std::vector<Row>> compare(const Model& model, const std::vector<Datum>& outputs,
                                   const std::optional<Golden>& golden) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Row row{.name = model.output_names[i], .type = "sequence or optional", .distance = {}};
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
      if (std::ranges::find(rows, expected.first, &Row::name) == rows.end())
        rows.push_back({.name = expected.first,
                        .type = "missing",
                        .distance = Distance{.problem = "the model has no such output"}});
  return rows;
}

nlohmann::json json_of(const NativeReport& report) {
  nlohmann::json interpreted = nlohmann::json::object();
  for (const auto& [name, entry] : report.interpreted)
    interpreted[name] = {{"count", entry.count}, {"why", entry.why}};
  return {{"operators", report.native},
          {"launches", report.launches},
          {"compiled", report.compiled},
          {"compile_seconds", report.compile_seconds},
          {"interpreted", std::move(interpreted)}};
}

/// How it was run, and how long that took.
struct Ran {
  double seconds = 0;
  std::optional<NativeReport> native = {};
};

void print(const std::vector<Row>& rows, const Options& options, const Ran& ran, Context& context) {
  bool agrees = true;
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
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
        verdict = fmt::format("  error {:.2e}, mean {:.2e}, l2 {:.2e}: {}", row.distance->error,
                              row.distance->mean_error, row.distance->l2_error,
                              within ? "agrees" : "DIFFERS");
      } else {
        entry["problem"] = row.distance->problem;
        verdict = "  DIFFERS: " + row.distance->problem;
      }
    }
    list.push_back(std::move(entry));
    if (!context.json) fmt::print("{}: {}{}\n", row.name, row.type, verdict);
  }
  if (context.json) {
    nlohmann::json object = {{"outputs", std::move(list)}, {"seconds", ran.seconds}};
    if (ran.native) object["native"] = json_of(*ran.native);
    if (!options.golden.empty()) {
      object["tolerance"] = options.tolerance;
      object["agrees"] = agrees;
    }
    fmt::print("{}\n", object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    if (ran.native && !context.quiet) fmt::print("{}", to_text(*ran.native));
    fmt::print("{:.2f} s\n", ran.seconds);
  }
  if (!agrees) context.exit_code = kNo;
}

Expected<Done> run_model(const Options& options, Context& context) {
  TESSERA_TRY_DONE(context.start());
  TESSERA_TRY(InputOptions given, input_options(options));
  std::optional<Golden> golden;
  if (!options.golden.empty()) {
    TESSERA_TRY(golden.emplace(), read_golden(options.golden));
    for (const auto& [name, size] : golden->dims) given.dims.emplace(name, size);
  }
  TESSERA_TRY(const Model model, load_model(options.model));
  std::int64_t memory = context.run_memory(model.file_bytes);
  given.memory_limit = memory;
  TESSERA_TRY(const std::vector<Datum> inputs, make_inputs(model.graph, given));
  for (std::size_t i = 0; i < inputs.size(); ++i)  // those from files are mapped
    if (!given.files.contains(model.graph.name(model.graph.inputs()[i])))
      memory -= static_cast<std::int64_t>(inputs[i].tensor().bytes.size());

  ProgressLine line(context);
  const auto start = std::chrono::steady_clock::now();
  const interp::Options run_options{.threads = options.threads,
                                    .memory_limit = memory,
                                    .most_rounds = context.most_rounds(),
                                    .stop = &context.stop,
                                    .progress = [&](const interp::Progress& progress) {
                                      line.show(progress.done, progress.nodes, progress.op);
                                    }};
  std::vector<Datum> outputs;
  Ran ran;
  if (options.native) {
    TESSERA_TRY(NativeRun run,
                run_native(model.graph, inputs, {.run = run_options, .cache = options.cache}));
    outputs = std::move(run.outputs);
    ran.native = std::move(run.report);
  } else {
    TESSERA_TRY(outputs, interp::run(model.graph, inputs, run_options));
  }
  ran.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  line.clear();

  if (!options.save.empty()) TESSERA_TRY_DONE(save_outputs(model, outputs, options.save));
  TESSERA_TRY(const std::vector<Row> rows, compare(model, outputs, golden));
  print(rows, options, ran, context);
  return Done{};
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("run", "runs a model and compares what it answers");
  auto options = std::make_shared<Options>();
  command->add_option("model", options->model, "an ONNX file, or a graph in text form")->required();
  command->add_option("--engine", options->engine, "what runs it")
      ->check(CLI::IsMember({"interp"}))
      ->capture_default_str();
  command->add_flag("--native", options->native,
                    "operator by operator as machine code, what has none by the interpreter");
  command->add_option("--cache", options->cache, "with --native: a folder for object code");
  command->add_option("--input", options->inputs, "NAME=FILE.npy, once for each input");
  command->add_option("--fill", options->fill, "the other inputs: sin, or random:SEED");
  command->add_option("--set", options->dims, "DIM=N: the size of a symbolic dimension");
  command->add_option("--reshape", options->shapes, "NAME=8x3x224x224: the shape of an input");
  command->add_option("--save", options->save, "folder for the outputs, as .npy");
  command->add_option("--compare", options->golden, "golden answers (JSON) to compare with");
  command
      ->add_option("--tolerance", options->tolerance, "how far outputs may be from the golden ones")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--threads", options->threads, "how many threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera run bert.onnx --fill sin --set batch=2 --compare bert.golden.json\n"
      "\n"
      "--fill sin: a float is sin(i) of its flat index i, an integer i % 1000.\n"
      "--compare: with rms = l2 / sqrt(count), the largest |y - g| / rms over the samples, the\n"
      "difference of the means over rms and the relative difference of l2 stay within the "
      "tolerance.");
  command->callback([options, &context] {
    if (const auto done = run_model(*options, context); !done)
      context.fail(located(done.error(), {.file = options->model}));
  });
}

}  // namespace tessera::cli
