#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/tile/kernel.h"

namespace tessera::tile {

/// What is known of an integer value, or of the elements of an integer or pointer tile.
///
/// Along axis d of a tile, `contiguity[d]` elements in a row grow by one each, in aligned groups;
/// `constancy[d]` are equal, in aligned groups; `divisor` divides the first element of each
/// contiguous group (of a pointer: bytes; of what is zero: 2^62). Elements lie in [low, high] where
/// those are known.
struct Facts {
  std::int64_t divisor = 1;
  std::vector<std::int64_t> contiguity = {}, constancy = {};
  std::optional<std::int64_t> low = {}, high = {};
  bool operator==(const Facts&) const = default;
};

/// By value id. Loops are followed to a fixed point; assumptions, hints, static extents and the
/// bounds of loops and grids are used. Addresses of views are multiples of `alignment` bytes, and
/// the first parameters are multiples of `divisors`.
std::vector<Facts> facts_of(const Kernel& kernel, std::int64_t alignment = 1,
                            const std::vector<std::int64_t>& divisors = {});

}  // namespace tessera::tile
