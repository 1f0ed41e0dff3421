#pragma once

#include "tessera/tile/cpu/placement.h"

namespace tessera::tile::cpu {

/// Vectorizes a nest: chooses the axis along which most accesses are contiguous, the vector width
/// of the narrowest type, and an unroll factor that the registers allow.
void choose_vectors(Nest& nest, const ScheduledKernel& scheduled, const Placement& placement,
                    const machine::Machine& machine, const NestOptions& options);

}  // namespace tessera::tile::cpu
