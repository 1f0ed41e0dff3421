#pragma once

#include <map>
#include <string>
#include <vector>

#include "tessera/expr/definition.h"

namespace tessera {

/// Sizes of a definition's axes (`#axis`) on given inputs.
using Sizes = std::map<std::string, Dim, std::less<>>;

/// Matches the operands of a definition with the shapes of its inputs (those that are present, in
/// order) and solves for the sizes of its axes. Two sizes that differ as numbers are a diagnostic;
/// two that differ only in their symbols are assumed to be equal.
Expected<Sizes> solve_sizes(const Definition& definition, const std::vector<Shape>& inputs);

/// Replaces the `#axis` symbols of a size.
Dim resolved(const Dim& dim, const Sizes& sizes);

/// Types of the outputs for these sizes; a negative size is a diagnostic.
Expected<std::vector<TensorType>> output_types(const Definition& definition, const Sizes& sizes);

}  // namespace tessera
