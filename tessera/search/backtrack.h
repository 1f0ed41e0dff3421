#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>

#include "tessera/cost/model.h"
#include "tessera/search/neighbours.h"

namespace tessera::search {

/// Reason why a search ended.
enum class StopReason : std::uint8_t {
  Exhausted,  // every reachable graph was visited
  Steps,      // step budget
  Time,       // time budget
  Stopped,    // cancelled
};
std::string_view to_string(StopReason stop);

using Clock = std::chrono::steady_clock;

/// Limits of a search.
struct Limits {
  double alpha = 1.05;  // a graph is kept if it costs less than alpha times the best
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();  // number of cost queries
  Clock::time_point deadline = Clock::time_point::max();
  std::size_t most_states = 10'000;         // size of the queue
  const std::atomic<bool>* stop = nullptr;  // cancellation flag
  std::set<std::string> first = {};         // rules that are tried before the others

  bool is_stopped() const { return stop != nullptr && *stop; }
  bool is_late() const { return deadline != Clock::time_point::max() && Clock::now() >= deadline; }
};

/// State of the search: a graph, its cost, and the rules that led to it.
struct State {
  Graph graph;
  double seconds = 0;  // cost by the model
  std::vector<RuleApplication> path = {};
};

/// Outcome of a search.
struct SearchOutcome {
  std::vector<State> best = {};  // cheapest first
  StopReason why = StopReason::Exhausted;
  std::int64_t steps = 0;
};

/// Backtracking search of TASO (Jia et al., SOSP 2019, section 5), a best-first search: the
/// cheapest unvisited graph is expanded by every applicable rule, and each new graph is kept if it
/// costs less than `alpha` times the best, so that a rewrite that costs something may lead to one
/// that pays. Starts from several graphs with known costs; returns the `keep` cheapest of all.
///
/// Deterministic but for the deadline: ties are broken by order.
Expected<SearchOutcome> backtrack(std::vector<State> from, const RewriteMoves& moves,
                                  cost::Model& model, const Limits& limits, std::size_t keep);

}  // namespace tessera::search
