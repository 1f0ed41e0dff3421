#pragma once

#include "tessera/tile/passes/ranges.h"

namespace tessera::tile {

/// Arithmetic on the per-axis counts (contiguity, constancy, divisibility) of `Facts`.
using Counts = std::vector<std::int64_t>;

constexpr std::int64_t kLargeDivisor = std::int64_t{1} << 62;

Counts ones(const Extents& shape);
Counts gcd(const Counts& a, const Counts& b);
/// Divisor of the product of two numbers, given a divisor of each.
std::int64_t product(std::int64_t a, std::int64_t b);

/// Difference of neighbouring elements in a contiguous group: 1; for pointers, the size of an
/// element in bytes.
std::int64_t step_of(const Type& type);
/// Divisor of the elements at multiples of `groups`, which may lie inside of contiguous groups.
std::int64_t divisor_at(const Facts& facts, const Counts& groups, std::int64_t step = 1);
/// Divisor of every element.
std::int64_t divisor_of_all(const Facts& facts);
/// Facts without contiguity: as if no element grew by one from its neighbour.
Facts without_contiguity(Facts facts, std::int64_t step = 1);

/// Facts of a Broadcast, Reshape, Permute or Slice, given those of its operand.
Facts moved(const Operation& op, const Facts& x, const Type& from, const Type& to);

}  // namespace tessera::tile
