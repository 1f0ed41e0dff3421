#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"
#include "tessera/runtime/program_file.h"

namespace tessera::cli {

void add_verify(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("verify", "checks the checksums of a saved program and its weights");
  auto file = std::make_shared<std::string>();
  command->add_option("program", *file, "compiled program (.tsr)")->required();
  add_common(*command, context);
  command->footer("Example:\n  tessera verify resnet50.tsr");
  command->callback([file, &context] {
    if (auto started = context.start(); !started) return context.fail(started.error());
    if (auto verified = runtime::verify(*file); !verified) return context.fail(verified.error());
    if (context.json)
      fmt::print("{{\"checksums\": \"ok\", \"whole\": true}}\n");
    else if (!context.quiet)
      fmt::print("{}: checksums OK\n", *file);
  });
}

}  // namespace tessera::cli
