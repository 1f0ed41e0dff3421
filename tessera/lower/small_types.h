#pragma once

#include "tessera/tile/builder.h"

namespace tessera::lower {

// Tile programs know no small types: these are bytes in memory (storage_of), and conversions are
// operations on bits.

/// Elements of a dtype, as they are stored, as numbers of another dtype that is not small.
tile::ValueId from_storage(tile::Builder& builder, tile::ValueId stored, DType dtype, DType to);

/// Numbers as elements of a dtype, as they are stored: the bits of `encoded` for a small float, an
/// integer that wraps for a small integer, and a Cast for any other.
tile::ValueId to_storage(tile::Builder& builder, tile::ValueId x, DType dtype);

}  // namespace tessera::lower
