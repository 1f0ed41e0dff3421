#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tessera/prove/prove.h"
#include "tessera/support/rng.h"

namespace tessera::prove {

/// Instance of two graphs: all their symbolic sizes are numbers.
struct Instance {
  SizeValues sizes;
  Graph source, target;
};

/// What drawing sizes came to.
struct Draws {
  std::string why = {};                   // there are no sizes to try
  int tried = 0;                          // choices of sizes that the source takes
  std::optional<Refuted> no_target = {};  // sizes that the target does not take
};

/// Tries of a search that is more than a quick look, and those that it makes at larger sizes
/// besides.
inline constexpr int kThorough = 20, kLargerTries = 4;

/// Instances of two graphs at random sizes that satisfy the guard, `options.tries` of them at most
/// and then some at larger sizes; it ends early where `visit` says no.
Draws draw_instances(const Graph& source, const Graph& target, const Guard& guard,
                     const Options& options,
                     const std::function<bool(const Instance&, Rng&)>& visit);

/// The graph with composites expanded whose float attributes are inputs, so that it can be run.
Expected<Graph> with_real_operands(const Graph& graph);

/// The target at the sizes of the source; symbols that only the target has follow from them.
Expected<Graph> target_at(SizeValues& sizes, const Graph& target, Rng& rng);

}  // namespace tessera::prove
