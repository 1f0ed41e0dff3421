#pragma once

#include "tessera/tile/cpu/placement.h"

namespace tessera::tile::cpu {

/// Whether a function is computed by a polynomial, whose constants take registers.
bool is_series(Function function);

/// Chooses which axis of a nest goes into vectors, how wide they are and how many run together:
/// the axis along which most accesses are contiguous, the narrowest type's vectors, and as many as
/// the registers hold.
void choose_vectors(Nest& nest, const Scheduled& scheduled, const Placement& placement,
                    const machine::Machine& machine, const NestOptions& options);

}  // namespace tessera::tile::cpu
