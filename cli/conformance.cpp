#include "tessera/driver/conformance.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/json.h"
#include "cli/model_flags.h"

namespace tessera::cli {
namespace {

using Outcome = ConformanceResult::Outcome;

struct ConformanceFlags {
  std::string folder, engine = "native";
  CompileFlags compile;
};

nlohmann::json listed(const std::vector<ConformanceResult>& results, Outcome outcome) {
  nlohmann::json list = nlohmann::json::array();
  for (const ConformanceResult& result : results)
    if (result.outcome == outcome)
      list.push_back({{"test", result.name}, {"why", result.why}, {"seconds", result.seconds}});
  return list;
}

std::string_view label(Outcome outcome) {
  switch (outcome) {
    case Outcome::Passed: return "passed";
    case Outcome::Wrong: return "WRONG";
    case Outcome::Failed: return "FAILED";
    case Outcome::Unsupported: return "unsupported";
  }
  return "";
}

void print(const std::vector<ConformanceResult>& results, Context& context) {
  const auto count = [&](Outcome outcome) {
    return std::ranges::count(results, outcome, &ConformanceResult::outcome);
  };
  const auto passed = count(Outcome::Passed), wrong = count(Outcome::Wrong),
             failed = count(Outcome::Failed), unsupported = count(Outcome::Unsupported);
  const auto slowest = std::ranges::max_element(results, {}, &ConformanceResult::seconds);
  if (context.json) {
    print_json({{"passed", passed},
                {"wrong", wrong},
                {"failed", failed},
                {"unsupported", unsupported},
                {"slowest", {{"test", slowest->name}, {"seconds", slowest->seconds}}},
                {"wrong_outputs", listed(results, Outcome::Wrong)},
                {"failures", listed(results, Outcome::Failed)},
                {"not_supported", listed(results, Outcome::Unsupported)}});
  } else {
    for (const ConformanceResult& result : results)
      if (result.outcome != Outcome::Passed)
        fmt::print("{:<11} {}: {}\n", label(result.outcome), result.name, result.why);
    fmt::print(
        "{} passed, {} wrong, {} failed, {} unsupported; the slowest took {:.1f} s of CPU time "
        "({})\n",
        passed, wrong, failed, unsupported, slowest->seconds, slowest->name);
  }
  if (wrong + failed > 0) context.exit_code = kNegativeResult;
}

Expected<Done> run_conformance(const ConformanceFlags& flags, Context& context) {
  const bool native = flags.engine == "native";
  TESSERA_TRY_DONE(context.start(native ? Limits::Program : Limits::Process));
  ProgressLine line(context);
  ConformanceOptions options{.engine = native ? ConformanceOptions::Engine::Native
                                              : ConformanceOptions::Engine::Reference};
  TESSERA_TRY(options.compile, compile_options(flags.compile, context, line));
  options.compile.code.progress = {};  // kernels of a test are too few to show
  options.run = execution_options(flags.compile, context);
  options.progress = [&](std::size_t done, std::size_t all) { line.show(done, all, "tests"); };
  TESSERA_TRY(const std::vector<ConformanceResult> results, conformance(flags.folder, options));
  line.clear();
  print(results, context);
  return Done{};
}

}  // namespace

void add_conformance(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "conformance", "runs ONNX backend tests: folders with model.onnx and test_data_set_*");
  auto flags = std::make_shared<ConformanceFlags>();
  command->add_option("folder", flags->folder, "folder of the tests, or of one test")->required();
  command
      ->add_option("--engine", flags->engine,
                   "native: compiled; reference: interpreted by the definitions of the operators")
      ->check(CLI::IsMember({"native", "reference"}))
      ->capture_default_str();
  add_compile_flags(*command, flags->compile);
  add_target_flag(*command, flags->compile);
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera conformance onnx/backend/test/data/node --json\n"
      "  tessera conformance onnx/backend/test/data/node --engine reference\n"
      "  tessera conformance onnx/backend/test/data/node --target cuda\n"
      "\n"
      "Exit code 1: a test has wrong outputs, or failed with an error other than unsupported\n"
      "content.");
  command->callback([flags, &context] {
    if (const auto done = run_conformance(*flags, context); !done) context.fail(done.error());
  });
}

}  // namespace tessera::cli
