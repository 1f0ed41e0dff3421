#pragma once

#include <optional>
#include <vector>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// Type inference: the result types of an operation where they follow from its operands and
/// regions; none where the results declare their own (a constant, a reshape, a cast, …). Missing or
/// wrong operands do no harm: `check_types` reports them afterwards.
std::optional<std::vector<Type>> inferred_types(const Kernel& kernel, const Operation& op);

/// Types of the values that a region yields; none where it does not end with a Yield.
std::vector<Type> yielded_types(const Kernel& kernel, const Region& region);

}  // namespace tessera::tile
