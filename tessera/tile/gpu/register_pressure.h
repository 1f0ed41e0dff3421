#pragma once

#include <set>

#include "tessera/tile/gpu/planned_kernel.h"

namespace tessera::tile::gpu {

/// Registers of a thread that hold tiles at the same time, at most: a sum over the tiles that are
/// live. Operands that a loop reads from stage buffers and rematerialized tiles count nothing;
/// neither do scalars and addresses. `stages`: of software pipelines. `staged`: loads that producer
/// warps copy to shared memory.
int register_pressure(const PlannedKernel& planned, int stages, const std::set<OpId>& staged = {});

/// More registers of a thread that some programs need beside those of their tiles: an address or a
/// condition for each element of a tile that is loaded element by element, because its rows are not
/// known to be aligned (at most of all loads that are not `staged`), and what functions such as
/// tanh, of several instructions, compute on the way.
int more_registers(const PlannedKernel& planned, const std::set<OpId>& staged);

}  // namespace tessera::tile::gpu
