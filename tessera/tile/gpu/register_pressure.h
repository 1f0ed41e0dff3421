#pragma once

#include <set>

#include "tessera/tile/gpu/planned_kernel.h"

namespace tessera::tile::gpu {

/// Registers of a thread that hold tiles at the same time, at most: a sum over the tiles that are
/// live. Operands that a loop reads from stage buffers and rematerialized tiles count nothing;
/// neither do scalars and addresses. `stages`: of software pipelines. `staged`: loads that producer
/// warps copy to shared memory.
int register_pressure(const PlannedKernel& planned, int stages, const std::set<OpId>& staged = {});

}  // namespace tessera::tile::gpu
