#pragma once

#include "tessera/tile/builder.h"

namespace tessera::lower {

// Conversions of small types (fp8, fp4, int4), which tile IR does not have: they are bytes in
// memory (storage_of), and conversions are bit operations.

/// Decodes stored elements of a small dtype to numbers of another dtype.
tile::ValueId from_storage(tile::Builder& builder, tile::ValueId stored, DType dtype, DType to);

/// Encodes numbers as stored elements of a dtype: the bits of `encoded` for a small float, a
/// wrapped integer for a small integer, and a Cast for any other.
tile::ValueId to_storage(tile::Builder& builder, tile::ValueId x, DType dtype);

}  // namespace tessera::lower
