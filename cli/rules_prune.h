#pragma once

namespace CLI {
class App;
}

namespace tessera::cli {

struct Context;

/// `tessera rules prune` and `tessera rules covers`.
void add_rules_prune(CLI::App& rules, Context& context);

}  // namespace tessera::cli
