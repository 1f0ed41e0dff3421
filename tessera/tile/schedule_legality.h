#pragma once

#include <string>

#include "tessera/support/diagnostic.h"
#include "tessera/support/expected.h"
#include "tessera/tile/schedule.h"

namespace tessera::tile {

/// Diagnostic about a primitive that would change the result or cannot be lowered.
Diagnostic illegal(std::string message, std::string note = {});

/// Stage that a loop nest computes.
const Stage& stage_of(const Schedule& schedule, const Nest& nest);

/// Whether a reduction may be computed in any order: sum, product, min, max, and, or.
bool commutes(const Fold& fold);

/// Checks that the stage reads the tensor only at positions that are fixed where the loop begins,
/// so that the tensor can be loaded or computed there.
Expected<Done> check_positions(const Schedule& schedule, const Nest& nest, const Loop& loop,
                               const std::string& tensor);

/// Checks the invariants of a loop nest that hold after every primitive.
Expected<Done> check_nest(const Schedule& schedule, const Nest& nest);

}  // namespace tessera::tile
