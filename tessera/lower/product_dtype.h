#pragma once

#include <optional>

#include "tessera/lower/group.h"

namespace tessera::lower {

/// Element type that holds all factors of a group's matmuls exactly: F16 or BF16 where the tensors
/// that they read, or the casts that they are, have that type. Such matmuls need no f32 operands:
/// rounding to the type changes nothing, and accumulators are f32 anyway.
std::optional<DType> product_dtype(const Group& group);

/// The group without roundings to 16-bit floats between its stages, which are computed in f32: more
/// precise than the definition, equal over the reals.
Group without_roundings(Group group);

}  // namespace tessera::lower
