#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tessera/tile/kernel.h"
#include "tessera/tile/passes/affine_tiles.h"

namespace tessera::tile {

/// A load that depends on the elements of a one-dimensional tile: element i of that tile decides
/// the elements at position i along `axis` of the result.
struct LaneLoad {
  ValueId result = 0;
  std::size_t axis = 0;
};

/// Demand of elements that are out of bounds: where every store that depends on element i of the
/// tile `lanes` is masked by bound(i) >= 0, the other elements are not observed, and may have any
/// value if the loads that depend on them do not access memory. Returns those loads; none where an
/// element out of bounds may be observed.
///
///   row = rem(i, m)   t = load(offset(x, row))   store(offset(out, i), t, i < m)
///
/// `bound` has one axis. Elements stay apart along their axis through maps, data movement, dots
/// (rows of the left, columns of the right operand), reductions and scans along other axes, loops
/// and branches.
std::optional<std::vector<LaneLoad>> loads_of_unobserved(const Kernel& kernel,
                                                         const AffineTiles& tiles, ValueId lanes,
                                                         const AffineTile& bound);

}  // namespace tessera::tile
