#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/search/backtrack.h"
#include "tessera/search/regions.h"

namespace tessera::search {

struct Progress {
  std::size_t region = 0, regions = 0;
  double best = 1;  // what is left of the time that the graph was expected to take
};

struct Options {
  double alpha = 1.05;
  /// Graphs to look at. If given, nothing is measured and no clock is read: the same store of
  /// measurements gives the same graph.
  std::optional<std::int64_t> steps = {};
  double seconds = 30;
  bool exact = false;  // only rules that keep every bit
  /// Rules for where the others lead no further.
  std::vector<rules::Rule> more = {};
  CutOptions cut = {};
  const std::atomic<bool>* stop = nullptr;  // set from elsewhere: the best so far is the answer
  std::function<void(const Progress&)> progress = {};
};

/// A region that has a better form.
struct Choice {
  std::size_t nodes = 0, places = 1;  // of the region; in how many places of the graph it is
  std::vector<Applied> rules = {};    // in order
  double before = 0, after = 0;       // seconds in one place
  bool measured = false;              // every kernel of both was; else expected
};

/// What a search found.
struct Found {
  Graph graph;                            // the one that was given, if there is none that is better
  bool better = false;                    // by the cost model
  double before = 0, after = 0;           // seconds of the whole, expected
  std::vector<std::string> settled = {};  // rules that help everywhere, applied first
  std::vector<Choice> choices = {};       // those that bring most first
  std::size_t regions = 0, distinct = 0;
  std::int64_t steps = 0;
  Stop why = Stop::Exhausted;
};

/// The cheapest graph that rules lead to, as far as the limits allow.
///
/// Regions are searched one by one, those that take most time first; of regions that differ in
/// their weights alone, one for all. Rules that paid in one region are the first that are tried in
/// the next. Without `steps`, the best few of each are measured kernel by
/// kernel before one is chosen.
///
/// Needs:  sizes that are known.
/// Keeps:  the meaning (with `exact` bit for bit, else over the reals); inputs and outputs with
///         their names and types.
Expected<Found> optimize(const Graph& graph, const std::vector<rules::Rule>& rules,
                         cost::Model& model, const Options& options);

}  // namespace tessera::search
