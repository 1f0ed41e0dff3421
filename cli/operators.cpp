#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/json.h"
#include "tessera/driver/reference.h"
#include "tessera/ops/catalog.h"

namespace tessera::cli {

void add_operators(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("operators", "lists every operator, as docs/operators.md");
  add_common(*command, context);
  command->footer("Example:\n  tessera operators > docs/operators.md");
  command->callback([&context] {
    if (const auto started = context.start(); !started) return context.fail(started.error());
    if (!context.json) {
      fmt::print("{}", operator_reference());
      return;
    }
    nlohmann::json list = nlohmann::json::array();
    for (const OpDef& op : catalog())
      list.push_back({{"name", op.name},
                      {"kind", kind_name(op.kind())},
                      {"summary", op.summary},
                      {"inputs", op.inputs},
                      {"outputs", op.outputs}});
    print_json({{"operators", std::move(list)}});
  });
}

}  // namespace tessera::cli
