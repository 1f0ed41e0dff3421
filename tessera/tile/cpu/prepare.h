#pragma once

#include "tessera/tile/kernel.h"

namespace tessera::tile::cpu {

/// The passes that a kernel goes through before it is scheduled: simplify, recover, narrow,
/// simplify, split, and dots that add up in a narrow type rewritten to add up in f32. With
/// `keep_pointers` (debug mode) accesses stay as they were written.
Kernel prepare(const Kernel& kernel, bool keep_pointers);

/// An estimate of the nanoseconds that one program takes; loops of unknown length count 16 rounds.
double work_of(const Kernel& kernel);

}  // namespace tessera::tile::cpu
