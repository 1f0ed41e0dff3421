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

/// What random inputs are made of.
enum class Numbers { Small, Fractions, Positive };  // -3..3; eighths of (-2, 2); of (0, 2]

/// Tensors for the inputs of a graph whose sizes are numbers; nothing where an input is no tensor
/// or too large. Integers are 0 or 1.
std::optional<std::vector<Tensor>> draw_inputs(const Graph& graph, Numbers numbers, Rng& rng);

}  // namespace tessera::prove
