#pragma once

#include <optional>
#include <vector>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// The types of the results of an operation where they follow from its operands and regions; none
/// where the results say their own (a constant, a reshape, a cast, …). Operands that are missing or
/// wrong do no harm: `check_types` is asked afterwards.
std::optional<std::vector<Type>> inferred_types(const Kernel& kernel, const Operation& op);

/// The types of what a region yields; none where it does not end with a Yield.
std::vector<Type> yielded_types(const Kernel& kernel, const Region& region);

}  // namespace tessera::tile
