#pragma once

#include "tessera/prove/spot.h"

namespace tessera::prove {

/// Takes one step that rids a term of a quotient, remainder, minimum or maximum of sizes; false
/// where there is none to be rid of.
bool simplify_operations(const Spot& spot);

}  // namespace tessera::prove
