#pragma once

#include <optional>
#include <vector>

#include "tessera/tile/kernel.h"

namespace tessera::tile::cpu {

/// Whether a value is known to be at most 0, or NaN: x - max(x, …), where the maximum may be a
/// reduction along an axis of x. `definition` has the defining operation of each value.
bool is_never_positive(const Kernel& kernel, const std::vector<std::optional<OpId>>& definition,
                       ValueId value);

}  // namespace tessera::tile::cpu
