#pragma once

#include <optional>
#include <vector>

#include "tessera/expr/definition.h"
#include "tessera/expr/shape.h"

namespace tessera {

/// Symbolic evaluation of a small output (at most 1024 elements): integers are Dims, and a
/// condition is decided where it holds for all sizes or for none. `inputs` are the definition's
/// operands in order; null, or without value and content, means unknown. Nothing if an element
/// depends on an unknown value or takes too much work.
///
/// Booleans are 0 or 1. A float output has values if all are whole numbers: shape arithmetic may
/// pass through floats, and sizes are assumed to be exact there.
std::optional<std::vector<Dim>> symbolic_values(const Definition& definition, const Sizes& sizes,
                                                const std::vector<const Argument*>& inputs,
                                                std::size_t output = 0);

/// Constant folding of a small output: its elements as a tensor if all are numbers without symbols.
/// Values are computed in double and rounded to the dtype at the end.
std::optional<Tensor> known_content(const Definition& definition, const Sizes& sizes,
                                    const std::vector<const Argument*>& inputs,
                                    std::size_t output = 0);

}  // namespace tessera
