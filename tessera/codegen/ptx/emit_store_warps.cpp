#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"

// Stores of tiles that are contiguous per warp but not per thread: the accumulators of matmuls.
// Each warp transposes boxes of up to 16 rows, a cache line wide, through its own part of shared
// memory, so that no warp waits for another.

namespace tessera::codegen::ptx {
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

/// A tile as a matrix: all axes but the last are flattened to rows.
struct MatrixOfRows {
  Layout layout;
  std::vector<int> shifts;  // position of each of those axes' bits in the row number
};
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

}  // namespace

std::optional<Emitter::WarpBox> Emitter::warp_box(const Place& place, const Layout& tile) const {
  const int width = byte_width(place.dtype);
  if (tile.rank() < 2 || place.run * width != kChunk) return {};
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

void Emitter::store_by_warps(const Place& place, const WarpBox& box, ValueId x) {
  const Layout tile = home(x);
  const MatrixOfRows rows = matrix_of(tile);
  const Layout& from = rows.layout;
  const std::size_t last = place.shape.size() - 1;
  prepare(x, tile);
  llvm::Type* wide = ir_.getInt64Ty();
  const int width = byte_width(place.dtype);
  Block::Buffer corner = Block::buffer({box.rows, box.columns}, place.dtype);
  const int warps = block_.threads() >> kLaneBits;
  corner.offset = block_.scratch(corner.bytes() * warps);
  corner.base = ir_.CreateMul(ir_.CreateLShr(block_.thread(), block_.i32(kLaneBits)),
                              block_.i32(corner.bytes()));
  const Layout lines = Layout::blocked({.shape = {box.rows, box.columns},
                                        .order = {1, 0},
                                        .threads = 1 << kLaneBits,
                                        .run = place.run});
  const auto meet = [&] {
    block_.intrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {block_.i32(-1)});
  };
  // A box of a matrix is mostly in bounds. Boxes with more axes often end outside, because they are
  // powers of two: each chunk is checked.
  const bool asks = last > 1, even = place.shape[last] % place.run == 0;
  llvm::Value* whole = even ? place.aligned : ir_.getFalse();
  for (std::size_t axis = 0; axis <= last && !asks; ++axis) {
    const std::int64_t extent = tile.extent(static_cast<int>(axis));
    llvm::Value* room = ir_.CreateSub(place.extents[axis], block_.i64(extent));
    whole = ir_.CreateAnd(whole, ir_.CreateAnd(ir_.CreateICmpSGE(place.start[axis], block_.i64(0)),
                                               ir_.CreateICmpSLE(place.start[axis], room)));
    if (extent != place.shape[axis]) whole = ir_.getFalse();
  }
  llvm::Value *warp_row = block_.coordinate(from, 0, kLaneBits),
              *warp_column = ir_.CreateAdd(
                  place.start[last], ir_.CreateZExt(block_.coordinate(from, 1, kLaneBits), wide));
  struct Target {
    llvm::Value *packed = nullptr, *address = nullptr, *column = nullptr;
    std::vector<llvm::Value*> rows = {};  // along each axis of rows
  };
  // Element of the box at a row and a column, and its position in the tile.
  const auto target = [&](int first, llvm::Value* row, llvm::Value* column) {
    llvm::Value* indices[] = {row, column};
    Target made;
    made.packed = ir_.CreateAlignedLoad(block_.packed_type(place.dtype, place.run),
                                        block_.address(corner, indices), llvm::Align(kChunk));
    row = ir_.CreateAdd(ir_.CreateAdd(warp_row, row), block_.i32(from.offset(0, first)));
    made.column = ir_.CreateAdd(ir_.CreateAdd(warp_column, ir_.CreateZExt(column, wide)),
                                block_.i64(from.offset(1, first)));
    llvm::Value* at = ir_.CreateMul(made.column, place.strides[last]);
    for (std::size_t axis = 0; axis < last; ++axis) {
      llvm::Value* along = ir_.CreateLShr(row, block_.i32(rows.shifts[axis]));
      if (axis > 0)
        along = ir_.CreateAnd(along, block_.i32(tile.extent(static_cast<int>(axis)) - 1));
      made.rows.push_back(ir_.CreateAdd(place.start[axis], ir_.CreateZExt(along, wide)));
      at = ir_.CreateAdd(at, ir_.CreateMul(made.rows.back(), place.strides[axis]));
    }
    made.address = ir_.CreateAdd(place.base, ir_.CreateMul(at, block_.i64(width)));
    return made;
  };
  const auto is_in = [&](llvm::Value* at, std::size_t axis) {
    llvm::Value* end =
        ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, place.extents[axis],
                                  ir_.CreateAdd(place.start[axis], block_.i64(place.shape[axis])));
    return ir_.CreateAnd(ir_.CreateICmpSGE(at, block_.i64(0)), ir_.CreateICmpSLT(at, end));
  };
  const auto is_known = [&](std::size_t axis) {
    return is_known_inside(place, axis) && tile.extent(static_cast<int>(axis)) == place.shape[axis];
  };
  const auto row_is_in = [&](const Target& made) {
    llvm::Value* inside = nullptr;
    for (std::size_t axis = 0; axis < last; ++axis)
      if (!is_known(axis)) inside = block_.both(inside, is_in(made.rows[axis], axis));
    return inside;
  };
  // Aligned chunks are in bounds or out of bounds as a whole.
  const auto write_chunk = [&](const Target& made) {
    llvm::Value* inside = row_is_in(made);
    if (!is_known(last)) inside = block_.both(inside, is_in(made.column, last));
    block_.when(inside, [&] {
      ir_.CreateAlignedStore(made.packed, global(made.address), llvm::Align(kChunk));
    });
  };
  const auto write_elements = [&](const Target& made) {
    llvm::Value* row_inside = row_is_in(made);
    const Pieces elements = block_.unpack(made.packed, place.dtype, place.run);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto offset = static_cast<std::int64_t>(i);
      llvm::Value* inside =
          block_.both(row_inside, is_in(ir_.CreateAdd(made.column, block_.i64(offset)), last));
      block_.when(inside, [&] {
        llvm::Value* address = ir_.CreateAdd(
            made.address, ir_.CreateMul(place.strides[last], block_.i64(offset * width)));
        ir_.CreateAlignedStore(block_.pack({&elements[i], 1}, place.dtype), global(address),
                               llvm::Align(static_cast<std::uint64_t>(width)));
      });
    }
  };
  const auto write_lines = [&](int first) {
    std::vector<Target> targets;
    for (int reg = 0; reg < lines.registers(); reg += place.run)
      targets.push_back(target(first, block_.index(lines, 0, reg), block_.index(lines, 1, reg)));
    for (const Target& made : targets) {
      if (asks)
        write_chunk(made);
      else
        ir_.CreateAlignedStore(made.packed, global(made.address), llvm::Align(kChunk));
    }
  };
  // Short code for a rare case.
  const auto write_rest = [&](int first) {
    const std::int64_t per_row = box.columns / place.run;
    block_.repeat(
        block_.thread_bits(0, kLaneBits), box.rows * per_row, 1 << kLaneBits,
        [&](llvm::Value* number) {
          const Target made = target(
              first, ir_.CreateLShr(number, block_.i32(index_bits(per_row))),
              ir_.CreateMul(ir_.CreateAnd(number, block_.i32(per_row - 1)), block_.i32(place.run)));
          if (asks || !even) return write_elements(made);
          either(
              place.aligned, [&] { return write_chunk(made), Pieces{}; },
              [&] { return write_elements(made), Pieces{}; });
        });
  };
  for (int number = 0; number < 1 << box.bits.size(); ++number) {
    int first = 0;  // register of the box
    for (std::size_t i = 0; i < box.bits.size(); ++i)
      if ((number >> i & 1) != 0) first |= 1 << box.bits[i];
    std::vector<std::size_t> registers;
    for (int reg = 0; reg < from.registers(); ++reg) {
      int others = reg;
      for (std::size_t i = 0; i < from.register_bits().size(); ++i)
        if (std::find(box.bits.begin(), box.bits.end(), i) == box.bits.end()) others &= ~(1 << i);
      if (others == first) registers.push_back(static_cast<std::size_t>(reg));
    }
    std::map<ValueId, Pieces> known;
    const Pieces values = part(x, tile, registers, known);
    if (number > 0) meet();  // the previous box has been read
    block_.put(corner, box.held, values);
    meet();
    const auto way = [&](const auto& write) {
      return [&] {
        write(first);
        return Pieces{};
      };
    };
    either(whole, way(write_lines), way(write_rest));
  }
  block_.forget();
}

}  // namespace tessera::codegen::ptx
