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

/// An index as an affine form of index variables, by name.
using AffineIndex = Affine<std::string>;

/// How far index variables run.
using AxisExtents = std::map<std::string, std::int64_t, std::less<>>;

/// An integer expression over index variables whose extents are known, in that form, if it has it.
/// Sizes that are numbers count as such.
std::optional<AffineIndex> affine(const Scalar& scalar, const AxisExtents& extents,
                                  const Sizes& sizes = {});

/// Where it lies while the variables are in their extents.
Range range(const AffineIndex& index, const AxisExtents& extents);

}  // namespace tessera::lower
