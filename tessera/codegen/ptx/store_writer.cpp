#include "tessera/codegen/ptx/store_writer.h"

#include <algorithm>

// Stores to views. A tile whose layout is not contiguous per thread, such as accumulators of a
// matmul, is written to shared memory first; a loop then stores rows of it: short code, however
// large the tile.

namespace tessera::codegen::ptx {

void StoreWriter::store_through_shared(const Place& place, const tile::gpu::StoreView& store) {
  const Block::Buffer exchange = *store.exchange;
  block_.put(exchange, *store.held, tile(place.op->in.back(), *store.held));
  block_.barrier();

  const tile::Extents& shape = place.shape;
  const std::int64_t per_row = shape.back() / place.run;
  const std::int64_t chunks =
      per_row * tile::Type::tile(place.dtype, {shape.begin(), shape.end() - 1}).count();
  const int width = byte_width(place.dtype);
  llvm::Type* wide = ir_.getInt64Ty();
  struct Chunk {
    llvm::Value *packed, *address;
    llvm::Value *inside, *last;  // inside: in bounds along all axes but the last; last: start
                                 // position along the last
  };
  const auto read = [&](llvm::Value* number) {
    std::vector<llvm::Value*> indices(shape.size());
    llvm::Value* rest = number;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      const std::int64_t extent = axis + 1 == shape.size() ? per_row : shape[axis];
      indices[axis] = axis == 0 ? rest : ir_.CreateURem(rest, block_.i32(extent));
      if (axis + 1 == shape.size())
        indices[axis] = ir_.CreateMul(indices[axis], block_.i32(place.run));
      if (axis > 0) rest = ir_.CreateUDiv(rest, block_.i32(extent));
    }
    Chunk chunk{.packed = nullptr, .address = block_.i64(0), .inside = nullptr, .last = nullptr};
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      llvm::Value* at = ir_.CreateAdd(place.start[axis], ir_.CreateZExt(indices[axis], wide));
      chunk.address = ir_.CreateAdd(chunk.address, ir_.CreateMul(at, place.strides[axis]));
      if (axis + 1 == shape.size()) chunk.last = at;
      if (axis + 1 == shape.size() || place.is_known_inside(axis)) continue;
      llvm::Value* below = ir_.CreateICmpULT(at, place.extents[axis]);
      chunk.inside = block_.both(chunk.inside, below);
    }
    chunk.address = ir_.CreateAdd(place.base, ir_.CreateMul(chunk.address, block_.i64(width)));
    chunk.packed = ir_.CreateAlignedLoad(
        block_.packed_type(place.dtype, place.run), block_.address(exchange, indices),
        llvm::Align(static_cast<std::uint64_t>(place.run * width)));
    return chunk;
  };
  // A vector that starts before the view may end in it.
  const auto inside_at = [&](const Chunk& chunk, std::int64_t further) {
    if (place.is_known_inside(shape.size() - 1)) return chunk.inside;
    llvm::Value* at = ir_.CreateAdd(chunk.last, block_.i64(further));
    return block_.both(chunk.inside, ir_.CreateICmpULT(at, place.extents.back()));
  };
  const auto write = [&](llvm::Value* value, llvm::Value* address, llvm::Value* inside, int bytes) {
    const auto store = [&] {
      ir_.CreateAlignedStore(value, global(address),
                             llvm::Align(static_cast<std::uint64_t>(bytes)));
    };
    block_.when(inside, store);
  };
  const std::int64_t threads = block_.threads();
  std::int64_t at_once = 4;
  while (chunks % (threads * at_once) != 0 && at_once > 1) at_once /= 2;
  const auto by_chunks = [&] {
    block_.repeat(block_.thread(), chunks, threads * at_once, [&](llvm::Value* number) {
      std::vector<Chunk> list;
      for (std::int64_t i = 0; i < at_once; ++i)
        list.push_back(read(ir_.CreateAdd(number, block_.i32(i * threads))));
      for (const Chunk& chunk : list)
        write(chunk.packed, chunk.address, inside_at(chunk, 0), place.run * width);
    });
    return Pieces{};
  };
  const auto by_elements = [&] {
    block_.repeat(block_.thread(), chunks, threads, [&](llvm::Value* number) {
      const Chunk chunk = read(number);
      const Pieces elements = block_.unpack(chunk.packed, place.dtype, place.run);
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const auto offset = static_cast<std::int64_t>(i);
        llvm::Value* address = ir_.CreateAdd(
            chunk.address, ir_.CreateMul(place.strides.back(), block_.i64(offset * width)));
        write(block_.pack({&elements[i], 1}, place.dtype), address, inside_at(chunk, offset),
              width);
      }
    });
    return Pieces{};
  };
  either(place.aligned, by_chunks, by_elements);
}

void StoreWriter::write(const tile::gpu::StoreView& store) {
  const Operation& op = operation(store.op);
  const Place& place = views_.place_of(store.op);
  if (store.boxes) return store_boxes(place, store);
  if (store.exchange) return store_through_shared(place, store);
  const Pieces registers = tile(op.in.back(), place.layout);
  llvm::Value* first = block_.is_first(place.layout);
  // Packed before the branch: both versions then need half of the registers.
  Pieces packed;
  for (int reg = 0; reg < place.layout.registers(); reg += place.run)
    packed.push_back(block_.pack(std::span(registers).subspan(static_cast<std::size_t>(reg),
                                                              static_cast<std::size_t>(place.run)),
                                 place.dtype));
  const auto write = [&](llvm::Value* value, int reg, int run) {
    const auto store = [&] {
      ir_.CreateAlignedStore(
          value, global(views_.address(place, reg)),
          llvm::Align(static_cast<std::uint64_t>(run * byte_width(place.dtype))));
    };
    llvm::Value* inside = views_.within(place, reg);
    block_.when(block_.both(inside, first), store);
  };
  const bool edge = place.known && place.known->edge && place.run > 1;
  views_.by_runs(place, [&](int run) {
    for (std::size_t i = 0; i < packed.size(); ++i) {
      const int reg = static_cast<int>(i) * place.run;
      const auto by_elements = [&] {
        const Pieces elements = block_.unpack(packed[i], place.dtype, place.run);
        for (int j = 0; j < place.run; ++j)
          write(block_.pack({&elements[static_cast<std::size_t>(j)], 1}, place.dtype), reg + j, 1);
        return Pieces{};
      };
      const auto at_once = [&] {
        write(packed[i], reg, run);
        return Pieces{};
      };
      if (run != place.run) {
        by_elements();
      } else if (edge) {
        either(views_.is_in_row(place, reg, run), at_once, by_elements);
      } else {
        at_once();
      }
    }
    return Pieces{};
  });
}

}  // namespace tessera::codegen::ptx
