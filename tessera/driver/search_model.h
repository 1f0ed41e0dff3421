#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <optional>

#include "tessera/search/search.h"

namespace tessera {

/// How a graph is searched for a better one.
struct SearchOptions {
  double seconds = 60;                     // for all of it
  std::optional<std::int64_t> steps = {};  // in place of time: see search::Options
  double alpha = 1.05;
  bool exact = false;
  std::filesystem::path store = {};  // of measurements; in memory alone, if empty
  std::string target = {};           // whose measurements count: see cost::ModelOptions
  /// Set from elsewhere: the best so far is the answer. It is cleared then, as what comes after the
  /// search is to be done.
  std::atomic<bool>* stop = nullptr;
  std::function<void(const search::Progress&)> progress = {};
};

/// What is known of a rule that was applied.
struct RuleNote {
  std::string about, guard, numerics;
};

struct SearchReport {
  search::Found found = {};                         // without its graph
  std::map<std::string, RuleNote> rules = {};       // by name, those that were applied
  std::optional<cost::Comparison> comparison = {};  // of the whole, where it was measured
  bool kept = false;                                // the found graph is the answer
  double seconds = 0;
};

struct Searched {
  Graph graph;
  SearchReport report;
};

/// The better of a graph and of what a search finds. Without `steps`, the two are run in turns on
/// this computer, and the one that is found is taken only if it is faster beyond doubt.
Expected<Searched> searched(const Graph& graph, const program::CompileOptions& code,
                            const SearchOptions& options);

}  // namespace tessera
