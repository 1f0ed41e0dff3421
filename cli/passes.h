#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tessera/driver/inspect.h"
#include "tessera/passes/pipeline.h"

namespace CLI {
class App;
}

namespace tessera::cli {

/// Flags of the pass pipeline and its reports.
struct PassFlags {
  std::string numerics = "reals";
  std::vector<std::string> disabled, print_after;
  bool explain = false, validate = false;
};
void add_pass_flags(CLI::App& command, PassFlags& flags);
passes::Options pass_options(const PassFlags& flags);

/// Per-pass log: changes and times.
void print_log(const std::vector<passes::Record>& log);
nlohmann::json log_json(const std::vector<passes::Record>& log);

/// Operator counts before and after; a star marks those that decreased.
void print_operators(const Inventory& before, const Inventory& after);
nlohmann::json operators_json(const Inventory& before, const Inventory& after);

}  // namespace tessera::cli
