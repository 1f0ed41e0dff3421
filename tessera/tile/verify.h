#pragma once

#include "tessera/support/expected.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Most elements that a tile may have.
constexpr std::int64_t kMostElements = std::int64_t{1} << 26;
/// Most axes of a tile or a view.
constexpr int kMostAxes = 8;

/// Whether the types of one operation fit together (its regions are not entered). The diagnostic is
/// `tile-type` and names the line that the operation comes from.
Expected<Done> check_types(const Kernel& kernel, const Operation& op);

/// Whether a kernel is well formed: ids in range, every value defined once and before its uses,
/// regions with the parameters and yields that their operation asks for, types that fit.
Expected<Done> verify(const Kernel& kernel);

}  // namespace tessera::tile
