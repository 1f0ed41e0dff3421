#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"

// Stores of tiles whose threads do not hold side by side what lies side by side, but whose warps
// do: the sums of products. Each warp turns boxes of up to 16 rows, a line of memory wide, in a
// corner of shared memory of its own, so that no warp waits for another.

namespace tessera::codegen::ptx {
namespace {

constexpr std::int64_t kLine = 128;  // bytes
constexpr int kMostRowBits = 4;

/// Bits 0, 1, … of an axis, each once and no others: how many; or nothing.
std::optional<int> all_up_to(std::vector<IndexBit> bits, int axis) {
  std::erase_if(bits, [&](const IndexBit& bit) { return bit.axis != axis; });
  std::sort(bits.begin(), bits.end());
  for (std::size_t i = 0; i < bits.size(); ++i)
    if (bits[i].bit != static_cast<int>(i)) return {};
  return static_cast<int>(bits.size());
}

}  // namespace

std::optional<Emitter::WarpBox> Emitter::warp_box(const Place& place, const Layout& from) const {
  const int width = byte_width(place.dtype);
  if (from.rank() != 2 || place.run * width != kChunk) return {};
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
  const Layout from = home(x);
  prepare(x, from);
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
  llvm::Value* whole = place.aligned;
  llvm::Value* warp[2];  // where this warp's rows and columns begin
  for (const int axis : {0, 1}) {
    const auto at = static_cast<std::size_t>(axis);
    warp[axis] = ir_.CreateAdd(place.start[at],
                               ir_.CreateZExt(block_.coordinate(from, axis, kLaneBits), wide));
    llvm::Value* room = ir_.CreateSub(place.extents[at], block_.i64(from.extent(axis)));
    whole = ir_.CreateAnd(whole, ir_.CreateAnd(ir_.CreateICmpSGE(place.start[at], block_.i64(0)),
                                               ir_.CreateICmpSLE(place.start[at], room)));
    if (from.extent(axis) != place.shape[at]) whole = ir_.getFalse();
  }
  struct Target {
    llvm::Value *packed, *row, *column, *address;
  };
  // What lies in the box at a row and a column, and where it belongs.
  const auto target = [&](int first, llvm::Value* row, llvm::Value* column) {
    llvm::Value* indices[] = {row, column};
    Target made{
        .packed = ir_.CreateAlignedLoad(block_.packed_type(place.dtype, place.run),
                                        block_.address(corner, indices), llvm::Align(kChunk)),
        .row = nullptr,
        .column = nullptr,
        .address = nullptr};
    made.row = ir_.CreateAdd(ir_.CreateAdd(warp[0], ir_.CreateZExt(row, wide)),
                             block_.i64(from.offset(0, first)));
    made.column = ir_.CreateAdd(ir_.CreateAdd(warp[1], ir_.CreateZExt(column, wide)),
                                block_.i64(from.offset(1, first)));
    made.address = ir_.CreateAdd(
        place.base, ir_.CreateMul(ir_.CreateAdd(ir_.CreateMul(made.row, place.strides[0]),
                                                ir_.CreateMul(made.column, place.strides[1])),
                                  block_.i64(width)));
    return made;
  };
  const auto write_lines = [&](int first) {
    std::vector<Target> targets;
    for (int reg = 0; reg < lines.registers(); reg += place.run)
      targets.push_back(target(first, block_.index(lines, 0, reg), block_.index(lines, 1, reg)));
    for (const Target& made : targets)
      ir_.CreateAlignedStore(made.packed, global(made.address), llvm::Align(kChunk));
  };
  const auto write_elements = [&](int first) {
    const std::int64_t per_row = box.columns / place.run;
    block_.repeat(
        block_.thread_bits(0, kLaneBits), box.rows * per_row, 1 << kLaneBits,
        [&](llvm::Value* number) {
          const Target made = target(
              first, ir_.CreateLShr(number, block_.i32(index_bits(per_row))),
              ir_.CreateMul(ir_.CreateAnd(number, block_.i32(per_row - 1)), block_.i32(place.run)));
          const auto end = [&](std::size_t axis) {
            return ir_.CreateBinaryIntrinsic(
                llvm::Intrinsic::smin, place.extents[axis],
                ir_.CreateAdd(place.start[axis], block_.i64(place.shape[axis])));
          };
          const auto is_in = [&](llvm::Value* at, std::size_t axis) {
            return ir_.CreateAnd(ir_.CreateICmpSGE(at, block_.i64(0)),
                                 ir_.CreateICmpSLT(at, end(axis)));
          };
          const Pieces elements = block_.unpack(made.packed, place.dtype, place.run);
          for (std::size_t i = 0; i < elements.size(); ++i) {
            const auto offset = static_cast<std::int64_t>(i);
            llvm::Value* inside = ir_.CreateAnd(
                is_in(made.row, 0), is_in(ir_.CreateAdd(made.column, block_.i64(offset)), 1));
            block_.when(inside, [&] {
              llvm::Value* address = ir_.CreateAdd(
                  made.address, ir_.CreateMul(place.strides[1], block_.i64(offset * width)));
              ir_.CreateAlignedStore(block_.pack({&elements[i], 1}, place.dtype), global(address),
                                     llvm::Align(static_cast<std::uint64_t>(width)));
            });
          }
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
    const Pieces values = part(x, from, registers, known);
    if (number > 0) meet();  // the box before has been read
    block_.put(corner, box.held, values);
    meet();
    const auto way = [&](const auto& write) {
      return [&] {
        write(first);
        return Pieces{};
      };
    };
    either(whole, way(write_lines), way(write_elements));
  }
  block_.forget();
}

}  // namespace tessera::codegen::ptx
