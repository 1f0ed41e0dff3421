#pragma once

#include <cstdint>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/support/datum.h"

namespace tessera::testing {

/// A valid graph with inputs on which the interpreter succeeds.
struct RandomProgram {
  Graph graph;
  std::vector<Datum> inputs;
};

struct RandomProgramOptions {
  int max_nodes = 6;
  bool special_values =
      false;  // NaN, infinities, -0, denormal and extreme numbers among the inputs
};

/// A program over the whole catalog, the same for the same seed: operators and their attributes,
/// dtypes, shapes (empty ones, axes of size 1), constants in any operand, shared values, control
/// flow.
RandomProgram random_program(std::uint64_t seed, const RandomProgramOptions& options);

}  // namespace tessera::testing
