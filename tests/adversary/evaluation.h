#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/expr/condition.h"
#include "tessera/ir/graph.h"
#include "tessera/support/rng.h"
#include "tessera/support/tensor.h"

namespace tessera::testing {

/// What counts as a difference of two outputs.
enum class Closeness : std::uint8_t {
  Bits,   // any element that is not the same
  Reals,  // finite elements further apart than rounding explains, and integers
  /// The same where all that both graphs compute is finite: proofs over the reals claim no more.
  FiniteReals,
};

/// Whether the interpreter computes different outputs of two graphs on these inputs, in words;
/// nothing where it does not, or where one of them does not run.
std::optional<std::string> difference_on(const Graph& source, const Graph& target,
                                         const std::vector<Tensor>& inputs, Closeness closeness);

/// Numbers for inputs of known sizes on which nothing overflows and little is rounded: floats are
/// eighths, integers small, of either sign where the type has one.
std::optional<std::vector<Tensor>> moderate_inputs(const Graph& graph, Rng& rng);

/// Sizes and inputs on which two graphs over the same inputs differ over the reals, in words.
/// Independent of the prover's own search.
struct Search {
  Guard guard = {};  // holds of the sizes
  std::uint64_t seed = 1;
  int tries = 12;
  Closeness closeness = Closeness::Reals;
};
std::optional<std::string> find_difference(const Graph& source, const Graph& target,
                                           const Search& search);

}  // namespace tessera::testing
