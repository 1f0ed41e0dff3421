#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <map>

#include "tessera/codegen/ptx/store_writer.h"

// Stores of tiles that are contiguous per warp but not per thread: the accumulators of matmuls.
// Each warp transposes boxes of up to 16 rows, a cache line wide, through its own part of shared
// memory, so that no warp waits for another.

namespace tessera::codegen::ptx {

/// Store of a tile by warps: each transposes one box after the other through its own part of shared
/// memory, and writes its rows as whole cache lines.
struct StoreWriter::WarpStore {
  StoreWriter& writer;
  llvm::IRBuilder<>& ir;
  Block& block;
  const Place& place;
  const tile::gpu::WarpBox& box;
  const Layout tile;
  const Layout from;              // the tile as a matrix of rows
  const std::vector<int> shifts;  // as in MatrixOfRows
  const std::size_t last;         // axis
  const int width;                // bytes of an element
  /// A box of a matrix is mostly in bounds. Boxes with more axes often end outside, because they
  /// are powers of two: each chunk is checked.
  const bool checks_chunks, even;
  Block::Buffer corner;          // the box, in shared memory
  llvm::Value* whole = nullptr;  // whether the tile is in bounds and its rows are aligned
  llvm::Value *warp_row = nullptr, *warp_column = nullptr;

  WarpStore(StoreWriter& e, const Place& to, const tile::gpu::StoreBoxes& boxes,
            const Layout& layout)
      : writer(e),
        ir(e.ir_),
        block(e.block_),
        place(to),
        box(boxes.box),
        tile(layout),
        from(tile::gpu::matrix_of(layout).layout),
        shifts(tile::gpu::matrix_of(layout).shifts),
        last(to.shape.size() - 1),
        width(byte_width(to.dtype)),
        checks_chunks(last > 1),
        even(to.shape[last] % to.run == 0),
        corner(boxes.corner) {
    corner.base = ir.CreateMul(ir.CreateLShr(block.thread(), block.i32(kLaneBits)),
                               block.i32(corner.bytes()));
    whole = even ? place.aligned : ir.getFalse();
    for (std::size_t axis = 0; axis <= last && !checks_chunks; ++axis) {
      const std::int64_t extent = tile.extent(static_cast<int>(axis));
      llvm::Value* room = ir.CreateSub(place.extents[axis], block.i64(extent));
      whole = ir.CreateAnd(whole, ir.CreateAnd(ir.CreateICmpSGE(place.start[axis], block.i64(0)),
                                               ir.CreateICmpSLE(place.start[axis], room)));
      if (extent != place.shape[axis]) whole = ir.getFalse();
    }
    warp_row = block.coordinate(from, 0, kLaneBits);
    warp_column = ir.CreateAdd(
        place.start[last], ir.CreateZExt(block.coordinate(from, 1, kLaneBits), ir.getInt64Ty()));
  }

  /// A chunk of the box, and its position in the tile.
  struct Target {
    llvm::Value *packed = nullptr, *address = nullptr, *column = nullptr;
    std::vector<llvm::Value*> rows = {};  // along each axis of rows
  };
  /// `first`: first register of the box.
  Target target(int first, llvm::Value* row, llvm::Value* column) const {
    llvm::Type* wide = ir.getInt64Ty();
    llvm::Value* indices[] = {row, column};
    Target made;
    made.packed = ir.CreateAlignedLoad(block.packed_type(place.dtype, place.run),
                                       block.address(corner, indices), llvm::Align(kChunk));
    row = ir.CreateAdd(ir.CreateAdd(warp_row, row), block.i32(from.offset(0, first)));
    made.column = ir.CreateAdd(ir.CreateAdd(warp_column, ir.CreateZExt(column, wide)),
                               block.i64(from.offset(1, first)));
    llvm::Value* at = ir.CreateMul(made.column, place.strides[last]);
    for (std::size_t axis = 0; axis < last; ++axis) {
      llvm::Value* along = ir.CreateLShr(row, block.i32(shifts[axis]));
      if (axis > 0) along = ir.CreateAnd(along, block.i32(tile.extent(static_cast<int>(axis)) - 1));
      made.rows.push_back(ir.CreateAdd(place.start[axis], ir.CreateZExt(along, wide)));
      at = ir.CreateAdd(at, ir.CreateMul(made.rows.back(), place.strides[axis]));
    }
    made.address = ir.CreateAdd(place.base, ir.CreateMul(at, block.i64(width)));
    return made;
  }

  llvm::Value* is_in(llvm::Value* at, std::size_t axis) const {
    llvm::Value* end =
        ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, place.extents[axis],
                                 ir.CreateAdd(place.start[axis], block.i64(place.shape[axis])));
    return ir.CreateAnd(ir.CreateICmpSGE(at, block.i64(0)), ir.CreateICmpSLT(at, end));
  }
  bool is_known(std::size_t axis) const {
    return place.is_known_inside(axis) && tile.extent(static_cast<int>(axis)) == place.shape[axis];
  }
  llvm::Value* row_is_in(const Target& made) const {
    llvm::Value* inside = nullptr;
    for (std::size_t axis = 0; axis < last; ++axis)
      if (!is_known(axis)) inside = block.both(inside, is_in(made.rows[axis], axis));
    return inside;
  }

  void write(const Target& made) const {
    ir.CreateAlignedStore(made.packed, writer.global(made.address), llvm::Align(kChunk));
  }
  /// Aligned chunks are in bounds or out of bounds as a whole.
  void write_chunk(const Target& made) const {
    llvm::Value* inside = row_is_in(made);
    if (!is_known(last)) inside = block.both(inside, is_in(made.column, last));
    block.when(inside, [&] { write(made); });
  }
  void write_elements(const Target& made) const {
    llvm::Value* row_inside = row_is_in(made);
    const Pieces elements = block.unpack(made.packed, place.dtype, place.run);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto offset = static_cast<std::int64_t>(i);
      llvm::Value* inside =
          block.both(row_inside, is_in(ir.CreateAdd(made.column, block.i64(offset)), last));
      block.when(inside, [&] {
        llvm::Value* address = ir.CreateAdd(
            made.address, ir.CreateMul(place.strides[last], block.i64(offset * width)));
        ir.CreateAlignedStore(block.pack({&elements[i], 1}, place.dtype), writer.global(address),
                              llvm::Align(static_cast<std::uint64_t>(width)));
      });
    }
  }

  /// The rows of a box as cache lines.
  void write_lines(int first) const {
    const Layout lines = Layout::blocked({.shape = {box.rows, box.columns},
                                          .order = {1, 0},
                                          .threads = 1 << kLaneBits,
                                          .run = place.run});
    std::vector<Target> targets;
    for (int reg = 0; reg < lines.registers(); reg += place.run) {
      llvm::Value* row = block.index(lines, 0, reg);
      llvm::Value* column = block.index(lines, 1, reg);
      targets.push_back(target(first, row, column));
    }
    for (const Target& made : targets) {
      if (checks_chunks)
        write_chunk(made);
      else
        write(made);
    }
  }
  /// The same for a tile that is not whole: short code for a rare case.
  void write_rest(int first) const {
    const std::int64_t per_row = box.columns / place.run;
    block.repeat(block.thread_bits(0, kLaneBits), box.rows * per_row, 1 << kLaneBits,
                 [&](llvm::Value* number) {
                   llvm::Value* row = ir.CreateLShr(number, block.i32(index_bits(per_row)));
                   llvm::Value* column = ir.CreateMul(ir.CreateAnd(number, block.i32(per_row - 1)),
                                                      block.i32(place.run));
                   const Target made = target(first, row, column);
                   if (checks_chunks || !even) return write_elements(made);
                   writer.either(
                       place.aligned, [&] { return write_chunk(made), Pieces{}; },
                       [&] { return write_elements(made), Pieces{}; });
                 });
  }

  /// Registers of the box whose first one is this.
  std::vector<std::size_t> registers_of(int first) const {
    std::vector<std::size_t> registers;
    for (int reg = 0; reg < from.registers(); ++reg) {
      int others = reg;
      for (std::size_t i = 0; i < from.register_bits().size(); ++i)
        if (std::find(box.bits.begin(), box.bits.end(), i) == box.bits.end()) others &= ~(1 << i);
      if (others == first) registers.push_back(static_cast<std::size_t>(reg));
    }
    return registers;
  }
};

void StoreWriter::store_boxes(const Place& place, const tile::gpu::StoreView& of) {
  const tile::gpu::StoreBoxes& boxes = *of.boxes;
  const Layout& tile = *of.held;
  const ValueId x = place.op->in.back();
  const WarpStore store(*this, place, boxes, tile);
  const auto meet = [&] {
    block_.intrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {block_.i32(-1)});
  };
  for (int number = 0; number < 1 << boxes.box.bits.size(); ++number) {
    int first = 0;  // register of the box
    for (std::size_t i = 0; i < boxes.box.bits.size(); ++i)
      if ((number >> i & 1) != 0) first |= 1 << boxes.box.bits[i];
    const Pieces values = box_of(x, of, store.registers_of(first));
    // The previous box has been read, of this program or of the one before.
    if (number > 0 || mapping_.tile_pipelines) meet();
    block_.put(store.corner, boxes.box.held, values);
    meet();
    either(
        store.whole, [&] { return store.write_lines(first), Pieces{}; },
        [&] { return store.write_rest(first), Pieces{}; });
  }
}

Pieces StoreWriter::box_of(ValueId x, const tile::gpu::StoreView& store,
                           const std::vector<std::size_t>& registers) {
  std::map<ValueId, Pieces> computed;
  const auto part = [&](ValueId id) {
    if (const auto found = computed.find(id); found != computed.end()) return found->second;
    const Pieces all = tile(id, *store.held);
    Pieces some;
    for (const std::size_t reg : registers) some.push_back(all[reg]);
    return some;
  };
  for (const tile::gpu::Instruction& instruction : store.epilogue) {
    const auto& compute = std::get<tile::gpu::Compute>(instruction);
    computed[operation(compute.op).out[0]] = evaluator_.computed(compute, part);
  }
  return part(x);
}

}  // namespace tessera::codegen::ptx
