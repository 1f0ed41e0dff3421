#pragma once

#include <atomic>
#include <functional>
#include <limits>

#include "tessera/egraph/rewrites.h"

namespace tessera::egraph {

struct Limits {
  std::size_t nodes = 10'000;
  int rounds = 12;
  std::size_t matches = 4'000;  // of one rule in one round
  double seconds = std::numeric_limits<double>::infinity();
  const std::atomic<bool>* stop = nullptr;  // set from elsewhere: give up soon
};

/// Why no more rules were applied.
enum class Stop { Saturated, Goal, Nodes, Rounds, Seconds, Stopped };
std::string_view to_string(Stop stop);

struct Saturation {
  Stop why = Stop::Saturated;
  int rounds = 0;
  std::size_t applied = 0;  // matches
};

/// Applies rules wherever they match, round after round, until nothing new comes of it, the goal is
/// reached (asked after each round) or a limit is. The same e-graph and rules come out the same but
/// for the limits on time. Rules that `may_use` refuses are left out.
struct Wanted {
  std::function<bool(const EGraph&)> goal = {};
  std::function<bool(const rules::Rule&)> may_use = {};
};
Saturation saturate(EGraph& graph, Rewrites& rewrites, const Limits& limits,
                    const Wanted& wanted = {});

}  // namespace tessera::egraph
