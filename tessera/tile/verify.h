#pragma once

#include "tessera/support/expected.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Maximum number of elements of a tile.
constexpr std::int64_t kMostElements = std::int64_t{1} << 26;
/// Maximum rank of a tile or a view.
constexpr int kMostAxes = 20;

/// Type checker of one operation (its regions are not entered). The diagnostic is `tile-type` and
/// names the source line of the operation.
Expected<Done> check_types(const Kernel& kernel, const Operation& op);

/// Verifier of tile IR: ids in range, every value defined once and before its uses, regions with
/// the parameters and yields that their operation requires, types that fit.
Expected<Done> verify(const Kernel& kernel);

}  // namespace tessera::tile
