#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tessera/expr/scalar.h"
#include "tessera/expr/shape.h"
#include "tessera/lower/linear.h"

namespace tessera::lower {

/// base + sum of factor * index variable; no factor is 0.
struct Affine {
  std::int64_t base = 0;
  std::map<std::string, std::int64_t> factors = {};

  std::int64_t factor(const std::string& axis) const;
  bool operator==(const Affine&) const = default;
};

/// How far index variables run.
using AxisExtents = std::map<std::string, std::int64_t, std::less<>>;

/// An integer expression over index variables whose extents are known, in that form, if it has it.
/// Sizes that are numbers count as such.
std::optional<Affine> affine(const Scalar& scalar, const AxisExtents& extents,
                             const Sizes& sizes = {});

/// Where it lies while the variables are in their extents.
Range range(const Affine& affine, const AxisExtents& extents);

}  // namespace tessera::lower
