#pragma once

#include "tessera/tile/gpu/block_program.h"
#include "tessera/tile/gpu/decision.h"
#include "tessera/tile/gpu/planned_kernel.h"

namespace tessera::tile::gpu {

/// Has the two warpgroups of a block alternate in a loop of two matmuls with elementwise work
/// between them, as attention has: while one multiplies, the other one computes its softmax. Both
/// run the same body, one of them half an iteration later:
///
///   warpgroup 0    PV(i-1) QK(i)  |  softmax(i)      |  PV(i) QK(i+1)  |  softmax(i+1)  |
///   warpgroup 1    softmax(i-1)   |  PV(i-1) QK(i)   |  softmax(i)     |  PV(i) QK(i+1) |
///
/// `|` is a barrier of the block. The second matmul of an iteration is waited for together with the
/// first one of the next. The first operand of the first matmul (the queries) is in shared memory.
///
/// Needs:  a program of all threads of the block.
/// Leaves: a loop as it is whose warpgroups exchange data, with fewer than three stages, or whose
///         accumulators are read before the first matmul is complete. Gives the reason why no loop
///         was changed.
Decision<BlockProgram> alternate_warpgroups(const BlockProgram& program,
                                            const PlannedKernel& planned);

}  // namespace tessera::tile::gpu
