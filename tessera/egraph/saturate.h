#pragma once

#include <atomic>
#include <functional>
#include <limits>

#include "tessera/egraph/rewrites.h"

namespace tessera::egraph {

/// Limits of equality saturation.
struct Limits {
  std::size_t nodes = 10'000;
  int iterations = 12;
  std::size_t matches = 4'000;  // per rule and iteration
  double seconds = std::numeric_limits<double>::infinity();
  const std::atomic<bool>* stop = nullptr;  // cancellation by another thread
};

/// Why saturation ended.
enum class StopReason { Saturated, Goal, Nodes, Iterations, Seconds, Stopped };
std::string_view to_string(StopReason stop);

/// Outcome of saturation.
struct Saturation {
  StopReason why = StopReason::Saturated;
  int iterations = 0;
  std::size_t applied = 0;  // matches
};

struct SaturationOptions {
  std::function<bool(const EGraph&)> goal = {};          // checked after each iteration
  std::function<bool(const rules::Rule&)> may_use = {};  // selects rules; all by default
};

/// Equality saturation: applies rules wherever they match, iteration by iteration, until a fixed
/// point, the goal or a limit is reached. Deterministic apart from time limits.
Saturation saturate(EGraph& graph, Rewrites& rewrites, const Limits& limits,
                    const SaturationOptions& options = {});

}  // namespace tessera::egraph
