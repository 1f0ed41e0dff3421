#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// The parts of simplify. Each keeps the meaning bit for bit.

/// Computes what is known, and does less where an identity is exact:  x + 0 => x for integers,
/// permute(permute(x)), map(broadcast(a), broadcast(b)) => broadcast(map(a, b)), a branch on a
/// constant, a loop of no or of one round, carried values that never change.
///
/// Leaves: operations that nothing uses.
Kernel fold(const Kernel& kernel);

/// Computes each value once; a load again only after a write.
Kernel cse(const Kernel& kernel);

/// Moves out of a loop what is the same in every round. A load moves only if the loop surely has a
/// first round that would do it, and nothing in the loop writes or is observed.
///
/// Leaves: ids as they are.
Kernel licm(const Kernel& kernel);

/// Drops operations and carried values on which no effect depends.
///
/// Leaves: ids dense and in order.
Kernel dce(const Kernel& kernel);

}  // namespace tessera::tile
