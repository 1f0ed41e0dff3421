#pragma once

#include <optional>
#include <vector>

#include "tessera/prove/sizes.h"
#include "tessera/support/rng.h"
#include "tessera/support/tensor.h"

namespace tessera::prove {

/// Small numbers for all symbols of the graphs that satisfy the relations: mostly different ones,
/// sometimes equal ones and ones. Nothing where none were found.
std::optional<SizeValues> draw_sizes(const SizeRelations& relations, Rng& rng);

/// The same with axes of 4 to 8: windows have several positions, and tables several rows.
std::optional<SizeValues> draw_larger_sizes(const SizeRelations& relations, Rng& rng);

/// How sizes are spread that are to be like no others: growing with the names of the symbols, the
/// other way round, or in any order.
enum class Spread { Up, Down, Any };

/// Numbers for all symbols that satisfy the relations and little else: axes of different sizes and
/// none of them 1, as far as the relations allow it. Of two axes the first by name is smaller in
/// one of Up and Down and larger in the other. Nothing where none were found.
std::optional<SizeValues> draw_apart(const SizeRelations& relations, Spread spread, Rng& rng);

/// What random inputs are made of.
enum class Numbers {
  Small,      // -3..3; integers 0 or 1
  Fractions,  // eighths of (-2, 2); integers of both signs
  Positive,   // eighths of (0, 2]; integers below 10
};

/// Texts of a few letters and gaps, or of numbers.
Tensor draw_text(std::vector<std::int64_t> shape, Rng& rng);

/// Tensors for the inputs of a graph whose sizes are numbers; nothing where an input is no tensor
/// or too large.
std::optional<std::vector<Tensor>> draw_inputs(const Graph& graph, Numbers numbers, Rng& rng);

}  // namespace tessera::prove
