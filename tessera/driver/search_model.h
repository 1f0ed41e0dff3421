#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <optional>

#include "tessera/search/mutant_trials.h"
#include "tessera/search/search.h"

namespace tessera {

/// Options of the graph search of a model.
struct SearchOptions {
  double seconds = 60;                     // time budget
  std::optional<std::int64_t> steps = {};  // step budget in place of time: see search::Options
  double alpha = 1.05;
  bool exact = false;
  bool mutants = false;              // also partially equivalent rewrites, corrected
  bool trials = false;               // with `mutants`: also report each of them on its own
  std::filesystem::path store = {};  // file of measurements; in memory if empty
  std::string target = {};           // target of the measurements: see cost::ModelOptions
  /// Cancellation flag: ends the search with the best graph so far, and is cleared, as compilation
  /// continues after the search.
  std::atomic<bool>* stop = nullptr;
  std::function<void(const search::Progress&)> progress = {};
};

/// Description of an applied rule, for reports.
struct RuleNote {
  std::string about, guard, numerics;
  std::string region = {};  // of a mutant: where it is corrected, in words
};

/// Report of a graph search.
struct SearchReport {
  search::SearchResult found = {};                  // without its graph
  std::map<std::string, RuleNote> rules = {};       // applied rules by name
  std::optional<cost::Comparison> comparison = {};  // measurement of the whole graph, if any
  bool kept = false;                                // the new graph is used
  std::vector<search::MutantTrial> trials = {};     // mutants on their own, the best first
  double seconds = 0;
};

struct SearchedGraph {
  Graph graph;
  SearchReport report;
};

/// Searches for a faster graph and returns the better of the two. Without `steps`, both are timed
/// on this computer, interleaved, and the new one is used only if it is faster beyond the
/// confidence interval.
Expected<SearchedGraph> search_graph(const Graph& graph, const program::CompileOptions& code,
                                     const SearchOptions& options);

}  // namespace tessera
