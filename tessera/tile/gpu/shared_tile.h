#pragma once

#include <cstdint>
#include <vector>

#include "tessera/support/dtype.h"
#include "tessera/tile/type.h"

namespace tessera::tile::gpu {

/// A tile in shared memory, row-major with padded rows against bank conflicts: what threads
/// exchange elements through.
struct SharedTile {
  std::int64_t offset = 0;
  Extents extents = {};
  std::vector<std::int64_t> strides = {};  // in bytes
  DType dtype = DType::F32;

  static SharedTile of(const Extents& extents, DType dtype);
  std::int64_t bytes() const {
    return strides.empty() ? byte_width(dtype) : strides.front() * extents.front();
  }
  bool operator==(const SharedTile&) const = default;
};

/// Places tiles one after the other from an offset on, aligned to 16 bytes; returns their bytes.
std::int64_t place_in_sequence(std::vector<SharedTile>& tiles, std::int64_t offset = 0);

}  // namespace tessera::tile::gpu
