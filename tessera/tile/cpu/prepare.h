#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile::cpu {

/// Runs the passes before scheduling: simplify, recover, narrow, simplify, split; and rewrites dots
/// with narrow accumulators to accumulate in f32. With `keep_pointers` (debug mode) accesses stay
/// as written.
Kernel prepare(const Kernel& kernel, bool keep_pointers);

/// Estimated cost of one program in nanoseconds; loops of unknown length count as 16 iterations.
double work_of(const Kernel& kernel);

}  // namespace tessera::tile::cpu
