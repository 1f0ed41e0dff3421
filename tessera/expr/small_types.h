#pragma once

#include <optional>

#include "tessera/expr/definition.h"

namespace tessera {

/// Small type (8 bits or less) that a definition does arithmetic on, if there is one. Elements of
/// these types may be moved, compared, selected and converted only; arithmetic requires a
/// conversion first.
std::optional<DType> computed_small_type(const Definition& definition);

}  // namespace tessera
