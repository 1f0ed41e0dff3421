#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/context.h"

namespace tessera::cli {

/// Subcommand of `tessera rules`.
template <typename Options>
struct RulesCommand {
  const char* name;
  const char* what;
  Expected<Done> (*run)(const Options&, Context&);
  const char* footer;
};

template <typename Options>
CLI::App& add(CLI::App& rules, const RulesCommand<Options>& command,
              const std::shared_ptr<Options>& options, Context& context) {
  CLI::App* added = rules.add_subcommand(command.name, command.what);
  add_common(*added, context);
  added->footer(command.footer);
  added->callback([options, &context, run = command.run] {
    auto done = context.start();
    if (done) done = run(*options, context);
    if (!done) context.fail(done.error());
  });
  return *added;
}

/// `tessera rules generate`
void add_rules_generate(CLI::App& rules, Context& context);

/// `tessera rules prune` and `tessera rules covers`
void add_rules_prune(CLI::App& rules, Context& context);

}  // namespace tessera::cli
