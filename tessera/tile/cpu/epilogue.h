#pragma once

#include <functional>
#include <vector>

#include "tessera/tile/cpu/nest.h"
#include "tessera/tile/cpu/placement.h"

namespace tessera::tile::cpu {

/// Epilogue fusion: attaches to a dot the elementwise nest after it that reads its accumulators and
/// stores the result, so that it runs on registers:
///
///   dot a x b into buffer 0                 dot a x b into buffer 0
///   nest [112, 96]                    =>      nest [112, 96]
///     vstore(out, max(s + bias, 0))             vstore(out, max(s + bias, 0))
///
/// Applies where no later step needs the buffer (`is_needed`), every access is known to be in
/// bounds, no function is computed by a polynomial (its constants need registers), and the stores
/// do not write what the dot reads. A first addend (`bias`) becomes the initial value of the
/// accumulators.
void fuse_epilogues(std::vector<Step>& steps, const ScheduledKernel& scheduled,
                    const Placement& placement, const machine::Machine& machine,
                    const std::function<bool(std::size_t step, int buffer)>& is_needed);

}  // namespace tessera::tile::cpu
