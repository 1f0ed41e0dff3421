#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/json.h"
#include "tessera/machine/machine.h"

namespace tessera::cli {
namespace {

nlohmann::ordered_json to_json(const machine::Machine& machine) {
  auto units = nlohmann::ordered_json::array();
  for (const machine::Unit& unit : machine::units(machine))
    units.push_back({{"kind", machine::to_string(unit.kind)},
                     {"name", unit.name},
                     {"feature", unit.feature},
                     {"does", unit.does}});
  return {{"architecture", machine::to_string(machine.architecture)},
          {"cpu", machine.cpu},
          {"cores", machine.cores},
          {"threads", machine.threads()},
          {"siblings", machine.siblings},
          {"caches",
           {{"l1d", machine.l1d},
            {"l2", machine.l2},
            {"l3", machine.l3},
            {"line", machine.cache_line}}},
          {"vectors", {{"bytes", machine.vector_bytes}, {"registers", machine.vector_registers}}},
          {"units", std::move(units)},
          {"features", machine.features}};
}

}  // namespace

void add_machine(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("machine", "prints a machine's cores, caches, vector and matrix units");
  add_common(*command, context);
  const auto name = std::make_shared<std::string>("host");
  command->add_option("NAME", *name, "target machine: host, or LLVM's name of a CPU")
      ->capture_default_str();
  command->footer("Example:\n  tessera machine sapphirerapids --json");
  command->callback([&context, name] {
    if (const auto started = context.start(); !started) return context.fail(started.error());
    const auto machine = machine::named(*name);
    if (!machine) return context.fail(machine.error());
    if (context.json)
      print_json(to_json(*machine));
    else
      fmt::print("{}", machine::to_text(*machine));
  });
}

}  // namespace tessera::cli
