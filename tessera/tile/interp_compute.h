#pragma once

#include <span>

#include "tessera/tile/interp_value.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile::interp {

/// Runs an operation whose one result follows from its operands: no memory, no region, nothing that
/// can fail. `values` are those of the kernel by id; `out` has the size of the result.
void compute(const Kernel& kernel, std::span<const Datum> values, const Operation& op, Datum& out);

/// Integers of any dtype in 64 bits.
Datum as_i64(const Type& type, const Datum& integers);

}  // namespace tessera::tile::interp
