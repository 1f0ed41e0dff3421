#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tessera/expr/scalar.h"

namespace tessera::program {

/// A number plus multiples of positions.
struct Evenly {
  std::int64_t base = 0;
  std::map<std::string, std::int64_t> times = {};
};

/// An integer expression in this form, if it has it.
std::optional<Evenly> evenly(const Scalar& scalar);

/// The axis, if the expression is the position along one.
const std::string* axis_of(const Scalar& scalar);

/// Whether it stays in 0 .. size - 1 while the positions stay in their extents.
bool stays_within(const Scalar& scalar, std::int64_t size,
                  const std::map<std::string, std::int64_t>& extents);

}  // namespace tessera::program
