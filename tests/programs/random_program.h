#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
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

/// What programs have used: the attributes of operators (those that differed from the default), and
/// the dtypes of first operands.
class CatalogCoverage {
 public:
  void add(const Graph& graph);
  /// "215 of 218 operators, 301 of 310 attributes", and the names of the rest.
  std::string summary() const;
  /// Operators and `operator.attribute`s that no program had, of those that are not random.
  std::vector<std::string> missing() const;

 private:
  std::map<std::string, std::set<std::string>> attributes_;  // by operator
};

}  // namespace tessera::testing
