#pragma once

#include <optional>

#include "tessera/expr/definition.h"

namespace tessera {

/// The small type that a definition computes with, if there is one. Elements of these are moved,
/// compared, selected and converted; any other function of them is asked of what they are converted
/// to.
std::optional<DType> computed_small_type(const Definition& definition);

}  // namespace tessera
