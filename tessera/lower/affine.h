#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tessera/expr/affine.h"
#include "tessera/expr/scalar.h"
#include "tessera/expr/shape.h"
#include "tessera/lower/range.h"

namespace tessera::lower {

/// Affine form of an index over index variables, by name.
using AffineIndex = Affine<std::string>;

/// Extents of index variables.
using AxisExtents = std::map<std::string, std::int64_t, std::less<>>;

/// Affine form of an integer expression over index variables of known extent, if it has one. Sizes
/// are replaced by their numbers.
std::optional<AffineIndex> affine(const Scalar& scalar, const AxisExtents& extents,
                                  const Sizes& sizes = {});

/// Range of an index while the variables are in their extents.
Range range(const AffineIndex& index, const AxisExtents& extents);

}  // namespace tessera::lower
