#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Components of `simplify`. Each preserves the meaning bit for bit.

/// Folds constants and exact identities:  x + 0 => x for integers, permute(permute(x)),
/// map(broadcast(a), broadcast(b)) => broadcast(map(a, b)), branches on constants, loops of no or
/// of one iteration, carried values that never change.
///
/// Leaves: dead operations.
Kernel fold(const Kernel& kernel);

/// Common subexpression elimination; a load is repeated only after a store.
Kernel cse(const Kernel& kernel);

/// Loop-invariant code motion. A load moves only if the loop surely executes it in a first
/// iteration, and the loop has no stores or other effects.
///
/// Leaves: ids as they are.
Kernel licm(const Kernel& kernel);

/// Dead code elimination: drops operations and carried values on which no effect depends.
///
/// Leaves: ids dense and in order.
Kernel dce(const Kernel& kernel);

}  // namespace tessera::tile
