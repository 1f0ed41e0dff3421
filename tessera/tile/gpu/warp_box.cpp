#include "tessera/tile/gpu/warp_box.h"

#include <algorithm>

#include "tessera/tile/gpu/panels.h"

namespace tessera::tile::gpu {
namespace {

constexpr std::int64_t kLine = 128;  // bytes
constexpr int kMostRowBits = 4;

/// Number of bits 0, 1, … of an axis, if each occurs once and no others do.
std::optional<int> all_up_to(std::vector<IndexBit> bits, int axis) {
  std::erase_if(bits, [&](const IndexBit& bit) { return bit.axis != axis; });
  std::sort(bits.begin(), bits.end());
  for (std::size_t i = 0; i < bits.size(); ++i)
    if (bits[i].bit != static_cast<int>(i)) return {};
  return static_cast<int>(bits.size());
}

}  // namespace

MatrixOfRows matrix_of(const Layout& tile) {
  const int last = tile.rank() - 1;
  std::vector<int> shifts(static_cast<std::size_t>(last));
  for (int axis = last, shift = 0; axis-- > 0;) {
    shifts[static_cast<std::size_t>(axis)] = shift;
    shift += index_bits(tile.extent(axis));
  }
  const auto as_matrix = [&](std::vector<IndexBit> bits) {
    for (IndexBit& bit : bits) {
      if (bit.axis == last)
        bit.axis = 1;
      else if (bit.axis >= 0)
        bit = {.axis = 0, .bit = bit.bit + shifts[static_cast<std::size_t>(bit.axis)]};
    }
    return bits;
  };
  return {Layout(2, as_matrix(tile.register_bits()), as_matrix(tile.thread_bits())), shifts};
}

std::optional<WarpBox> warp_box(const Layout& tile, DType dtype, int run) {
  const int width = byte_width(dtype);
  if (tile.rank() < 2 || run * width != kChunk) return {};
  const Layout from = matrix_of(tile).layout;
  const int column_bits = std::min(index_bits(from.extent(1)), index_bits(kLine / width));
  std::vector<IndexBit> inside,
      box(from.thread_bits().begin(), from.thread_bits().begin() + kLaneBits);
  WarpBox found{.held = from};
  for (std::size_t i = 0; i < from.register_bits().size(); ++i) {
    const IndexBit& bit = from.register_bits()[i];
    if (bit.bit < (bit.axis == 1 ? column_bits : kMostRowBits)) {
      inside.push_back(bit);
      box.push_back(bit);
    } else {
      found.bits.push_back(i);
    }
  }
  const std::optional<int> rows = all_up_to(box, 0), columns = all_up_to(box, 1);
  constexpr int kLeastBits = kLaneBits + 3;  // a chunk of 16 bytes for each lane
  if (!rows || columns != column_bits || *rows + *columns != static_cast<int>(box.size()) ||
      static_cast<int>(box.size()) < kLeastBits)
    return {};
  found.held =
      Layout(2, inside, {from.thread_bits().begin(), from.thread_bits().begin() + kLaneBits});
  found.rows = std::int64_t{1} << *rows;
  found.columns = std::int64_t{1} << *columns;
  return found;
}

}  // namespace tessera::tile::gpu
