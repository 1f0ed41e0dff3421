#pragma once

#include <set>

#include "tessera/tile/gpu/block_program.h"
#include "tessera/tile/gpu/planned_kernel.h"

namespace tessera::tile::gpu {

/// Programmatic dependent launch: the blocks of a grid are scheduled while the grid before it still
/// runs, and await it before they access global memory. Launch latency, parameters, the
/// initialization of mbarriers and index arithmetic then overlap with the end of that grid, and so
/// do the first copies of a pipelined loop from memory that no grid writes, such as weights:
///
///   prefetch_first(loop, …)  =>  launch_dependents()  prefetch_constants(loop, [w])
///                                await_grids()  prefetch_first(loop, constants = [w], …)
///
/// A grid that is complete has awaited the one before it, so that all earlier grids are complete
/// after `await_grids`.
///
/// `constants`: parameters that are views of memory which no grid writes.
///
/// Needs:  a program without either instruction; a launcher that launches it as a programmatic
///         dependent (PtxOptions::programmatic_launch).
/// Leaves: `await_grids` on each path to an access of other memory, and in every block.
BlockProgram programmatic_launch(BlockProgram program, const PlannedKernel& planned,
                                 const std::set<ValueId>& constants);

}  // namespace tessera::tile::gpu
