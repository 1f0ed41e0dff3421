#pragma once

#include <set>

#include "tessera/tile/gpu/planned_kernel.h"

namespace tessera::tile::gpu {

/// Epilogue operations: elementwise operations between a matmul and the one store of their result.
/// They are not computed as whole tiles but for a few registers at a time, where the store needs
/// them: accumulators fill most of the registers, and a second tile would not fit beside them.
std::set<OpId> find_epilogues(const PlannedKernel& planned);

}  // namespace tessera::tile::gpu
