#pragma once

#include <span>

#include "tessera/tile/interp_value.h"
#include "tessera/tile/kernel.h"

namespace tessera::tile::interp {

/// Interprets a pure operation of one result: no memory, no region, no failure. `values` are those
/// of the kernel by id; `out` has the size of the result.
void compute(const Kernel& kernel, std::span<const Datum> values, const Operation& op, Datum& out);

/// Converts integers of any dtype to 64 bits.
Datum as_i64(const Type& type, const Datum& integers);

}  // namespace tessera::tile::interp
