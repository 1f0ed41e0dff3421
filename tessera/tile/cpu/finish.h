#pragma once

#include <functional>
#include <vector>

#include "tessera/tile/cpu/nest.h"
#include "tessera/tile/cpu/placement.h"

namespace tessera::tile::cpu {

/// Gives dots the nests behind them that make something of their sums and store it, position by
/// position:
///
///   dot a x b into buffer 0                 dot a x b into buffer 0
///   nest [112, 96]                    =>      nest [112, 96]
///     vstore(out, max(s + bias, 0))             vstore(out, max(s + bias, 0))
///
/// Nothing else may need the buffer afterwards (`is_needed`), every access is known to be inside of
/// its view, nothing is computed by a polynomial, and what is stored is not what the dot reads.
/// What is added to the sums first of all
/// (`bias`) is where they may start.
void finish_dots(std::vector<Step>& steps, const Scheduled& scheduled, const Placement& placement,
                 const machine::Machine& machine,
                 const std::function<bool(std::size_t step, int buffer)>& is_needed);

}  // namespace tessera::tile::cpu
