#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/support/dtype.h"
#include "tessera/tile/gpu/layout.h"

namespace tessera::tile::gpu {

/// A tile as a matrix: all axes but the last are flattened to rows.
struct MatrixOfRows {
  Layout layout;
  std::vector<int> shifts;  // position of each of those axes' bits in the row number
};
MatrixOfRows matrix_of(const Layout& tile);

/// Box of a tile that a warp holds, where its rows are one cache line wide: warps transpose such
/// boxes to store them, each in its own part of shared memory.
struct WarpBox {
  Layout held;                         // layout of the box in a warp
  std::vector<std::size_t> bits = {};  // register bits that select the box
  std::int64_t rows = 0, columns = 0;
};
/// Boxes of a tile in a layout, that is stored in runs of `run` elements; none where a warp does
/// not hold whole lines.
std::optional<WarpBox> warp_box(const Layout& tile, DType dtype, int run);

}  // namespace tessera::tile::gpu
