#pragma once

#include <map>
#include <string>
#include <vector>

#include "tessera/expr/definition.h"

namespace tessera {

/// What the sizes `#axis` of a definition are on given inputs.
using Sizes = std::map<std::string, Dim, std::less<>>;

/// Matches the operands of a definition with the shapes of its inputs (those that are present, in
/// order) and solves for the sizes of its axes. Two sizes that differ by their numbers are a
/// diagnostic; two that differ in their symbols only are taken to be equal.
Expected<Sizes> solve_sizes(const Definition& definition, const std::vector<Shape>& inputs);

/// A size with its `#axis` symbols replaced.
Dim resolved(const Dim& dim, const Sizes& sizes);

/// The types of the outputs under these sizes; a size that is negative is a diagnostic.
Expected<std::vector<TensorType>> output_types(const Definition& definition, const Sizes& sizes);

}  // namespace tessera
