#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/context.h"
#include "cli/store_flags.h"
#include "tessera/driver/search_model.h"

namespace tessera::cli {

/// Whether a better graph is searched for, and how far.
struct SearchFlags {
  bool search = false;
  std::string budget = "60s";
  StoreFlags costs;
  std::optional<std::int64_t> steps;
  double alpha = 1.05;
};
void add_search_flags(CLI::App& command, SearchFlags& flags);
/// Nothing if there is to be no search. Ctrl-C ends the search and keeps the best so far.
Expected<std::optional<SearchOptions>> search_options(const SearchFlags& flags, Context& context,
                                                      ProgressLine& line);

/// What was found: which rules, where, why they are right, and what they bring.
void print_search(const SearchReport& report, bool explain);
nlohmann::json search_json(const SearchReport& report);

}  // namespace tessera::cli
