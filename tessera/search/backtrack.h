#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>

#include "tessera/cost/model.h"
#include "tessera/search/neighbours.h"

namespace tessera::search {

/// Why a search ended.
enum class Stop : std::uint8_t {
  Exhausted,  // every graph within reach was looked at
  Steps,      // so many were
  Time,
  Stopped,  // from elsewhere
};
std::string_view to_string(Stop stop);

using Clock = std::chrono::steady_clock;

/// How far a search goes.
struct Limits {
  double alpha = 1.05;
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();  // graphs whose cost is asked
                                                                  // for
  Clock::time_point deadline = Clock::time_point::max();
  std::size_t most_states = 10'000;         // kept at a time
  const std::atomic<bool>* stop = nullptr;  // set from elsewhere: give up soon
  std::set<std::string> first = {};         // rules to be tried before the others

  bool is_stopped() const { return stop != nullptr && *stop; }
  bool is_late() const { return deadline != Clock::time_point::max() && Clock::now() >= deadline; }
};

/// A graph that was reached, and how.
struct State {
  Graph graph;
  double seconds = 0;  // as the cost model expects
  std::vector<Applied> path = {};
};

struct Tree {
  std::vector<State> best = {};  // cheapest first
  Stop why = Stop::Exhausted;
  std::int64_t steps = 0;
};

/// TASO's search (Jia et al., SOSP 2019, section 5): the cheapest graph that
/// was not looked at yet is replaced by all that one rule makes of it, and of
/// these every one is kept that costs less than `alpha` times the best. A
/// rewrite that costs something may so lead to one that pays. Begins with
/// several graphs whose costs are known; gives the `keep` cheapest of all.
///
/// Deterministic but for the deadline: ties go to what came first.
Expected<Tree> backtrack(std::vector<State> from, const Moves& moves, cost::Model& model,
                         const Limits& limits, std::size_t keep);

}  // namespace tessera::search
