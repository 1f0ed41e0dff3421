#pragma once

namespace CLI {
class App;
}

namespace tessera::cli {

struct Context;

/// `tessera rules generate`
void add_rules_generate(CLI::App& rules, Context& context);

}  // namespace tessera::cli
