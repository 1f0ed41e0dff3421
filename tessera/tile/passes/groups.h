#pragma once

#include "tessera/tile/passes/ranges.h"

namespace tessera::tile {

/// Arithmetic of the groups of elements that facts speak of: one count for each axis.
using Counts = std::vector<std::int64_t>;

constexpr std::int64_t kLargeDivisor = std::int64_t{1} << 62;

Counts ones(const Extents& shape);
Counts gcd(const Counts& a, const Counts& b);
/// A divisor of the product of what they divide.
std::int64_t product(std::int64_t a, std::int64_t b);

/// How much a step to the next element adds: a pointer counts in bytes.
std::int64_t step_of(const Type& type);
/// What divides the elements at multiples of `groups`, which may lie inside of groups that grow.
std::int64_t divisor_at(const Facts& facts, const Counts& groups, std::int64_t step = 1);
/// What divides every element.
std::int64_t divisor_of_all(const Facts& facts);
/// With elements that no longer grow.
Facts still(Facts facts, std::int64_t step = 1);

/// The facts of a Broadcast, Reshape, Permute or Slice by those of its operand.
Facts moved(const Operation& op, const Facts& x, const Type& from, const Type& to);

}  // namespace tessera::tile
