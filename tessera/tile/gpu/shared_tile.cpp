#include "tessera/tile/gpu/shared_tile.h"

#include "tessera/tile/gpu/panels.h"

namespace tessera::tile::gpu {
namespace {

std::int64_t in_chunks(std::int64_t bytes) {
  return (bytes + kChunk - 1) / kChunk * kChunk;
}

}  // namespace

SharedTile SharedTile::of(const Extents& extents, DType dtype) {
  SharedTile tile{.extents = extents, .dtype = dtype};
  tile.strides.resize(extents.size());
  std::int64_t stride = byte_width(dtype);
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    tile.strides[axis] = stride;
    stride *= extents[axis];
    // Rows of a multiple of 128 bytes would start in the same bank.
    if (axis + 1 == extents.size() && axis > 0 && stride >= kChunk)
      stride = in_chunks(stride) + kChunk;
  }
  return tile;
}

std::int64_t place_in_sequence(std::vector<SharedTile>& tiles, std::int64_t offset) {
  std::int64_t bytes = 0;
  for (SharedTile& tile : tiles) {
    tile.offset = offset + bytes;
    bytes += in_chunks(tile.bytes());
  }
  return bytes;
}

}  // namespace tessera::tile::gpu
