#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/expr/scalar.h"
#include "tessera/expr/shape.h"

namespace tessera {

/// What an expression is from one position on along an axis.
struct Segment {
  std::int64_t begin = 0;
  Scalar value;
};

/// An expression that says itself what it is below some positions along an axis, as concat does:
/// each part can be computed where it counts alone.
struct Segments {
  std::string axis = {};
  std::vector<Segment> parts = {};
};

/// At least two parts, in order; nullopt for other expressions.
std::optional<Segments> segments_of(const Scalar& value, const Sizes& sizes);

}  // namespace tessera
