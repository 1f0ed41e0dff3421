#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/context.h"
#include "cli/store_flags.h"
#include "tessera/driver/search_model.h"

namespace tessera::cli {

/// Flags of the graph search.
struct SearchFlags {
  bool search = false, mutants = false;
  std::string budget = "60s";
  StoreFlags costs;
  std::optional<std::int64_t> steps;
  double alpha = 1.05;
};
void add_search_flags(CLI::App& command, SearchFlags& flags);
/// Options of the search, or nothing if it is not requested. Ctrl-C ends the search with the best
/// graph so far.
Expected<std::optional<SearchOptions>> search_options(const SearchFlags& flags, Context& context,
                                                      ProgressLine& line);

/// Search report: applied rules, places, guards and gains.
void print_search(const SearchReport& report, bool explain);
nlohmann::json search_json(const SearchReport& report);

}  // namespace tessera::cli
