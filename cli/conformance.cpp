#include "tessera/driver/conformance.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/context.h"

namespace tessera::cli {
namespace {

using Outcome = ConformanceResult::Outcome;

nlohmann::json listed(const std::vector<ConformanceResult>& results, Outcome outcome) {
  nlohmann::json list = nlohmann::json::array();
  for (const ConformanceResult& result : results)
    if (result.outcome == outcome) list.push_back({{"test", result.name}, {"why", result.why}});
  return list;
}

void print(const std::vector<ConformanceResult>& results, Context& context) {
  const auto count = [&](Outcome outcome) {
    return std::ranges::count(results, outcome, &ConformanceResult::outcome);
  };
  const auto passed = count(Outcome::Passed), failed = count(Outcome::Failed),
             unsupported = count(Outcome::Unsupported);
  if (context.json) {
    const nlohmann::json object = {{"passed", passed},
                                   {"failed", failed},
                                   {"unsupported", unsupported},
                                   {"failures", listed(results, Outcome::Failed)},
                                   {"not_supported", listed(results, Outcome::Unsupported)}};
    fmt::print("{}\n", object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    for (const ConformanceResult& result : results)
      if (result.outcome != Outcome::Passed)
        fmt::print("{} {}: {}\n", result.outcome == Outcome::Failed ? "FAILED     " : "unsupported",
                   result.name, result.why);
    fmt::print("{} passed, {} failed, {} unsupported\n", passed, failed, unsupported);
  }
  if (failed > 0) context.exit_code = kNo;
}

}  // namespace

void add_conformance(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "conformance", "runs ONNX's backend tests: folders with model.onnx and test_data_set_*");
  auto folder = std::make_shared<std::string>();
  command->add_option("folder", *folder, "the folder of the tests, or one test")->required();
  add_common(*command, context);
  command->footer("Example:\n  tessera conformance onnx/backend/test/data/node --json");
  command->callback([folder, &context] {
    if (const auto started = context.start(); !started) return context.fail(started.error());
    ProgressLine line(context);
    ConformanceOptions options{.most_rounds = context.most_rounds(), .stop = &context.stop};
    options.memory_limit = context.run_memory(options.memory_limit / 4);
    options.progress = [&](std::size_t done, std::size_t all) { line.show(done, all, "tests"); };
    const auto results = conformance(*folder, options);
    line.clear();
    if (!results) return context.fail(results.error());
    print(*results, context);
  });
}

}  // namespace tessera::cli
