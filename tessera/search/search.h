#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/search/backtrack.h"
#include "tessera/search/regions.h"

/// Graph-level superoptimization: the search for the cheapest graph that rewrite rules lead to.
namespace tessera::search {

/// Progress of a search.
struct Progress {
  std::size_t region = 0, regions = 0;
  double best = 1;  // estimated time of the best graph, relative to the original
};

/// Options of optimize().
struct Options {
  double alpha = 1.05;
  /// Step budget: number of cost queries. If set, nothing is measured and no clock is read: the
  /// same store of measurements gives the same graph.
  std::optional<std::int64_t> steps = {};
  double seconds = 30;  // time budget without `steps`
  bool exact = false;   // only rules that keep every bit
  /// Additional rules, used where the others lead no further.
  std::vector<rules::Rule> more = {};
  CutOptions cut = {};
  const std::atomic<bool>* stop = nullptr;  // cancellation flag: ends with the best so far
  std::function<void(const Progress&)> progress = {};
};

/// Improved region.
struct Choice {
  std::size_t nodes = 0, places = 1;        // nodes of the region; its occurrences in the graph
  std::vector<RuleApplication> rules = {};  // in order
  double before = 0, after = 0;             // seconds of one occurrence
  bool measured = false;                    // all kernels of both were measured; else estimated
};

/// Result of a graph search.
struct SearchResult {
  Graph graph;                                  // best graph; the original if there is none
  bool better = false;                          // improved, by the cost model
  double before = 0, after = 0;                 // estimated seconds of the whole graph
  std::vector<std::string> normalization = {};  // normalization rules that were applied first
  std::vector<Choice> choices = {};             // improved regions, largest gain first
  std::size_t regions = 0, distinct = 0;
  std::int64_t steps = 0;
  StopReason why = StopReason::Exhausted;
};

/// Finds the cheapest graph that rules lead to, within the limits.
///
/// Regions are searched one by one, the most expensive first; regions that differ only in their
/// weights are searched once. Rules that paid in one region are tried first in the next. Without
/// `steps`, the best few graphs of each region are measured kernel by kernel before one is chosen.
///
/// Needs:  static sizes.
/// Keeps:  the meaning (with `exact` bit for bit, else over the reals); inputs and outputs with
///         their names and types.
Expected<SearchResult> optimize(const Graph& graph, const std::vector<rules::Rule>& rules,
                                cost::Model& model, const Options& options);

}  // namespace tessera::search
