#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/json.h"
#include "tessera/passes/pipeline.h"

namespace tessera::cli {

void add_passes(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("passes", "lists the graph passes in the order in which they run");
  add_common(*command, context);
  command->footer(
      "Example:\n"
      "  tessera passes --json\n"
      "\n"
      "stage     canonical and algebra: for every target, sizes may be symbolic; target: static\n"
      "          shapes, after the search\n"
      "numerics  exact: results are bit-identical; reals: skipped by --numerics exact; per rule:\n"
      "          applies only the bit-exact rules with --numerics exact\n"
      "\n"
      "compile, run and bench accept --disable-pass, --print-after, --validate and --explain for\n"
      "all passes, optimize for those of the stages canonical and algebra, which it runs.");
  command->callback([&context] {
    if (const auto started = context.start(); !started) return context.fail(started.error());
    if (context.json) {
      nlohmann::json list = nlohmann::json::array();
      for (const passes::PassInfo& pass : passes::pass_list())
        list.push_back({{"name", pass.name},
                        {"stage", to_string(pass.stage)},
                        {"numerics", to_string(pass.numerics)},
                        {"target", to_string(pass.target)},
                        {"summary", pass.summary}});
      return print_json({{"passes", std::move(list)}});
    }
    fmt::print("{:<24} {:<10} {:<9} {:<7} {}\n", "pass", "stage", "numerics", "target", "");
    for (const passes::PassInfo& pass : passes::pass_list())
      fmt::print("{:<24} {:<10} {:<9} {:<7} {}\n", pass.name, to_string(pass.stage),
                 to_string(pass.numerics), to_string(pass.target), pass.summary);
  });
}

}  // namespace tessera::cli
