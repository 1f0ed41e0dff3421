#include "tessera/driver/conformance.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tessera/driver/native_model.h"
#include "tessera/interp/interp.h"
#include "tessera/onnx/import.h"
#include "tessera/onnx/test_case.h"
#include "tessera/runtime/cuda/device.h"
#include "tessera/support/cpu_time.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Outcome = ConformanceResult::Outcome;

bool is_random(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](const GraphNode& node) {
    return !node.op->pure || std::ranges::any_of(graph.subgraphs(node), [](const auto& subgraph) {
      return is_random(*subgraph);
    });
  });
}

/// Description of how two tensors differ; empty if they agree.
std::string difference(const Tensor& actual, const Tensor& expected,
                       const ConformanceOptions& options) {
  if (actual.dtype != expected.dtype)
    return fmt::format("type {} instead of {}", to_string(actual.dtype), to_string(expected.dtype));
  if (actual.shape != expected.shape) return "another shape";
  if (actual.dtype == DType::String)
    return *actual.strings == *expected.strings ? "" : "other text";
  // Expected outputs are rounded themselves: one unit of the largest element is tolerated. Some
  // suites truncate to bf16 and round between steps: two units of each element.
  double largest = 0;
  for (std::int64_t i = 0; is_float(actual.dtype) && i < expected.count(); ++i)
    if (const double e = std::fabs(number_at(expected, i)); std::isfinite(e))
      largest = std::max(largest, e);
  const double absolute = std::max(options.absolute, 0x1p-23 * largest);
  const double relative =
      actual.dtype == DType::BF16 ? std::max(options.relative, 0x1p-6) : options.relative;
  for (std::int64_t i = 0; i < actual.count(); ++i) {
    if (!is_float(actual.dtype)) {
      if (integer_at(actual, i) != integer_at(expected, i))
        return fmt::format("element {} is {} instead of {}", i, integer_at(actual, i),
                           integer_at(expected, i));
      continue;
    }
    const double a = number_at(actual, i), e = number_at(expected, i);
    if (std::isnan(a) && std::isnan(e)) continue;
    if (a == e) continue;
    if (!(std::fabs(a - e) <= absolute + relative * std::fabs(e)))
      return fmt::format("element {} is {} instead of {}", i, a, e);
  }
  return "";
}

std::string difference(const Datum& actual, const Datum& expected,
                       const ConformanceOptions& options) {
  // An optional that holds something may be stored as what it holds.
  if (actual.kind() == Datum::Kind::Optional && expected.kind() != Datum::Kind::Optional &&
      actual.elements().size() == 1)
    return difference(actual.elements()[0], expected, options);
  if (actual.kind() != expected.kind()) return "another kind of value";
  if (actual.is_tensor()) return difference(actual.tensor(), expected.tensor(), options);
  if (!actual.present()) return "";
  if (actual.elements().size() != expected.elements().size()) return "another number of elements";
  for (std::size_t i = 0; i < actual.elements().size(); ++i)
    if (std::string why = difference(actual.elements()[i], expected.elements()[i], options);
        !why.empty())
      return fmt::format("element {} of the sequence: {}", i, why);
  return "";
}

bool says_unsupported(const Diagnostic& diagnostic) {
  return diagnostic.id.find("unsupported") != std::string::npos;
}

ConformanceResult failure(const std::string& name, const Diagnostic& diagnostic) {
  return {name, says_unsupported(diagnostic) ? Outcome::Unsupported : Outcome::Failed,
          to_string(located(diagnostic, {}))};
}

using Engine = std::function<Expected<std::vector<Datum>>(const std::vector<Datum>& inputs)>;

ConformanceResult run_case(const std::string& name, const onnx::TestCase& test, std::size_t inputs,
                           const Engine& engine, const ConformanceOptions& options) {
  std::vector<Datum> given = test.inputs;
  given.resize(inputs);  // trailing optional inputs are left out
  const auto outputs = engine(given);
  if (!outputs) return failure(name, outputs.error());
  if (test.outputs.empty()) return {name, Outcome::Failed, "there are no expected outputs"};
  if (outputs->size() < test.outputs.size())
    return {name, Outcome::Wrong, "fewer outputs than expected"};
  for (std::size_t i = 0; i < test.outputs.size(); ++i)
    if (const std::string why = difference((*outputs)[i], test.outputs[i], options); !why.empty())
      return {name, Outcome::Wrong, fmt::format("output {}: {}", i, why)};
  return {name};
}

ConformanceResult run_cases(const fs::path& folder, const ConformanceOptions& options) {
  const std::string name = folder.filename().string();
  const auto file = onnx::read_model(folder / "model.onnx");
  if (!file) return failure(name, file.error());
  auto imported = onnx::import_model(*file);
  if (!imported) return failure(name, imported.error());
  const Model model{.graph = std::move(imported->graph),
                    .output_names = std::move(imported->output_names)};
  if (is_random(model.graph)) return {name, Outcome::Unsupported, "random by nature"};
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      cases.push_back(entry.path());
  std::ranges::sort(cases);
  if (cases.empty()) return {name, Outcome::Unsupported, "there is no data to test with"};

  NativeModel native(model, options.compile, options.run);
  const Engine engine = [&](const std::vector<Datum>& inputs) -> Expected<std::vector<Datum>> {
    if (options.engine == ConformanceOptions::Engine::Native) return native.run(inputs);
    return interp::run(model.graph, inputs,
                       {.threads = options.run.threads,
                        .memory_limit = options.run.memory_limit,
                        .max_iterations = options.run.max_iterations,
                        .stop = options.run.stop});
  };
  for (const fs::path& one : cases) {
    const auto test = onnx::read_test_case(one, *file);
    if (!test) return failure(name, test.error());
    ConformanceResult result = run_case(name, *test, model.graph.inputs().size(), engine, options);
    if (result.outcome != Outcome::Passed) return result;
  }
  return {name};
}

ConformanceResult run_test(const fs::path& folder, const ConformanceOptions& options) {
  const CpuStopwatch watch(CLOCK_PROCESS_CPUTIME_ID);
  ConformanceResult result;
  try {
    result = run_cases(folder, options);
  } catch (const std::exception& problem) {  // the other tests say something all the same
    result = {folder.filename().string(), Outcome::Failed,
              fmt::format("internal error: {}", problem.what())};
  }
  result.seconds = watch.seconds();
  return result;
}

}  // namespace

Expected<std::vector<ConformanceResult>> conformance(const fs::path& folder,
                                                     const ConformanceOptions& options) {
  std::error_code error;
  std::vector<fs::path> tests;
  if (fs::exists(folder / "model.onnx", error)) tests.push_back(folder);
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (fs::exists(entry.path() / "model.onnx", error)) tests.push_back(entry.path());
  if (tests.empty())
    return Diagnostic{.id = "conformance-no-tests",
                      .where = {.file = folder.string()},
                      .message = "there is no test in this folder",
                      .note = "a test is a folder with model.onnx and test_data_set_0, …"};
  std::ranges::sort(tests);
  std::vector<ConformanceResult> results;
  // The context of a GPU is made once, not for each test; after a failure it is made anew, since a
  // kernel that failed leaves it unusable.
  std::optional<Expected<runtime::cuda::Device>> device;
  for (const fs::path& test : tests) {
    if (options.progress) options.progress(results.size(), tests.size());
    if (options.compile.code.machine.is_gpu() && !device) device = runtime::cuda::Device::open();
    results.push_back(run_test(test, options));
    if (results.back().outcome == Outcome::Failed) device.reset();
    if (options.run.stop != nullptr &&
        options.run.stop->load())  // what it says is not the test's fault
      return Diagnostic{
          .id = "stopped", .where = {.file = folder.string()}, .message = "the tests were stopped"};
  }
  return results;
}

}  // namespace tessera
