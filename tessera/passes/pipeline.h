#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera::passes {

struct Options {
  bool exact = false;                   // keep every bit: only what changes no rounding
  std::set<std::string> disabled = {};  // names of passes
  std::int64_t most_folded_bytes = std::int64_t{1} << 20;  // of a constant that folding makes
  bool validate = false;  // prove or evaluate before against after, pass by pass
  std::function<void(const std::string& pass, const Graph& after)> observe = {};
};

/// What a pass did.
struct Record {
  std::string pass;
  double seconds = 0;
  std::size_t nodes_before = 0, nodes_after = 0;
  std::vector<std::string> changes = {};  // one line each: which rule, where
};

struct Optimized {
  Graph graph;
  std::vector<Record> log = {};
};

/// The names of all passes, in the order in which they run.
std::vector<std::string> pass_names();

/// The passes that help whatever the target is. Sizes of the graph may be symbols.
///
/// Keeps:  the meaning (with `exact` bit for bit, else over the reals), inputs and outputs with
///         their names and types.
/// Leaves: softmax, layer_norm, rms_norm, gelu, … as one node each, however they were spelled.
Expected<Optimized> optimize(const Graph& graph, const Options& options);

}  // namespace tessera::passes
