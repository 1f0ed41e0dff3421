#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/expr/scalar.h"
#include "tessera/expr/shape.h"

namespace tessera {

/// Value of an expression from one position on along an axis.
struct Segment {
  std::int64_t begin = 0;
  Scalar value;
};

/// Piecewise expression along an axis, such as a concat: each part can be computed on its own
/// range.
struct Segments {
  std::string axis = {};
  std::vector<Segment> parts = {};
};

/// Splits an expression into at least two parts, in order; nullopt for other expressions.
std::optional<Segments> segments_of(const Scalar& value, const Sizes& sizes);

}  // namespace tessera
