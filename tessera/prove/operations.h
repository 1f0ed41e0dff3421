#pragma once

#include "tessera/prove/spot.h"

namespace tessera::prove {

/// Proof step that eliminates a quotient, remainder, minimum or maximum of sizes from a term; false
/// where there is none.
bool simplify_operations(const Spot& spot);

}  // namespace tessera::prove
