#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>

#include "tessera/codegen/ptx/emitter.h"

// Copies from global memory into the stages of a ring. Chunks of 16 bytes are dealt to the threads
// row by row, by cp.async; where 16 bytes do not fit, a loop takes element by element.

namespace tessera::codegen::ptx {

Emitter::Fits Emitter::how_it_fits(const Operation& op, const Ahead& ahead) {
  llvm::Value *from = scalar(op.in[0]), *to = scalar(op.in[1]), *step = scalar(op.in[2]);
  llvm::Type* wide = ir_.getInt64Ty();
  llvm::Value* one = llvm::ConstantInt::get(step->getType(), 1);
  llvm::Value* rounds = ir_.CreateSDiv(ir_.CreateSub(ir_.CreateSub(to, from), one),
                                       ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, step, one));
  llvm::Value* last = ir_.CreateAdd(from, ir_.CreateMul(rounds, step));
  llvm::Value *aligned = ir_.getTrue(), *whole = ir_.getTrue();
  for (const Ring& ring : ahead.rings) {
    const Operation& load = kernel_.ops[ring.load];
    const View& view = this->view(load.in[0]);
    const tile::Extents& shape = type(load.out[0]).shape;
    const auto at = [&](std::size_t axis, llvm::Value* index) {
      return ir_.CreateSExt(scalar_at(op, load.in[1 + axis], index), wide);
    };
    llvm::Value* parts = block_.i64(0);
    if (course_of(planned_, op, load.in[1 + ring.column]) != tile::gpu::Course::Known)
      parts = ir_.CreateOr(at(ring.column, from), at(ring.column, ir_.CreateAdd(from, step)));
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (axis != ring.column) parts = ir_.CreateOr(parts, view.strides[axis]);
    parts = ir_.CreateOr(ir_.CreateMul(parts, block_.i64(ring.panels.width)), view.base);
    aligned = ir_.CreateAnd(
        aligned, ir_.CreateICmpEQ(ir_.CreateAnd(parts, block_.i64(kChunk - 1)), block_.i64(0)));
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (ring.inside[axis]) continue;
      if (course_of(planned_, op, load.in[1 + axis]) == tile::gpu::Course::Known) {
        whole = ir_.getFalse();
        continue;
      }
      for (llvm::Value* index : {from, last}) {
        llvm::Value* start = at(axis, index);
        llvm::Value* room = ir_.CreateSub(view.extents[axis], block_.i64(shape[axis]));
        whole = ir_.CreateAnd(whole, ir_.CreateAnd(ir_.CreateICmpSGE(start, block_.i64(0)),
                                                   ir_.CreateICmpSLE(start, room)));
      }
    }
  }
  return {.aligned = aligned, .whole = ir_.CreateAnd(aligned, whole)};
}

Emitter::Origin Emitter::origin_of(const Operation& op, const Ring& ring, const Copy& copy) {
  const Operation& load = kernel_.ops[ring.load];
  Origin source{.view = view(load.in[0]),
                .shape = type(load.out[0]).shape,
                .operand = {ring.panels, ir_.CreateAdd(rings_.at(ring.load), copy.stage)},
                .column = ring.column,
                .start = {},
                .inside = ring.inside,
                .even = type(load.in[0]).shape[ring.column] != tile::kDynamic &&
                        type(load.in[0]).shape[ring.column] % (kChunk / ring.panels.width) == 0};
  for (std::size_t axis = 0; axis < source.shape.size(); ++axis)
    source.start.push_back(
        ir_.CreateSExt(scalar_at(op, load.in[1 + axis], copy.index), ir_.getInt64Ty()));
  return source;
}

// What a thread copies in a round differs from what it copies in another by one distance, which is
// the same in all threads; so are the bounds. All else is computed before the loop.
void Emitter::copy_chunks(const Origin& source, bool whole) {
  const SharedOperand& operand = source.operand;
  const std::size_t rank = source.shape.size();
  llvm::Type* wide = ir_.getInt64Ty();
  const std::int64_t per_row = source.per_row(), chunks = source.chunks();
  const std::int64_t threads = block_.threads();
  llvm::Value* chunk = ir_.CreateAnd(block_.thread(), block_.i32(per_row - 1));
  llvm::Value* own_row = ir_.CreateLShr(block_.thread(), block_.i32(index_bits(per_row)));
  const auto bytes_of = [&](llvm::Value* place, std::size_t axis) {
    llvm::Value* stride = ir_.CreateMul(source.view.strides[axis], block_.i64(operand.width));
    return ir_.CreateMul(place, axis == source.column ? block_.i64(operand.width) : stride);
  };

  std::vector<llvm::Value*> own;  // places in the tile, of the thread's first chunk
  llvm::Value *own_bytes = source.view.base, *round_bytes = block_.i64(0);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    own.push_back(axis == source.column
                      ? ir_.CreateMul(chunk, block_.i32(source.elements()))
                      : ir_.CreateAnd(ir_.CreateLShr(own_row, block_.i32(source.shift(axis))),
                                      block_.i32(source.shape[axis] - 1)));
    own_bytes = ir_.CreateAdd(own_bytes, bytes_of(ir_.CreateZExt(own.back(), wide), axis));
    round_bytes = ir_.CreateAdd(round_bytes, bytes_of(source.start[axis], axis));
  }
  llvm::Value* from = ir_.CreateAdd(own_bytes, round_bytes);

  const auto first_place = [&](std::size_t axis, std::int64_t further) {
    llvm::Value* place = ir_.CreateAdd(own[axis], block_.i32(further));
    return ir_.CreateAdd(source.start[axis], ir_.CreateZExt(place, wide));
  };
  // The bits of what is added to a thread's own row are none of that row's: places add up too.
  const auto part = [&](std::size_t axis, std::int64_t row) {
    return row >> source.shift(axis) & (source.shape[axis] - 1);
  };
  // With fewer threads than chunks in a row, a thread walks along the row before it goes down.
  const std::int64_t along = std::max<std::int64_t>(1, per_row / threads);
  const std::int64_t down = std::max<std::int64_t>(1, chunks / std::max(threads, per_row));
  const std::int64_t row_step = std::max<std::int64_t>(1, threads / per_row);
  const auto copy_all = [&] {
    for (std::int64_t j = 0; j < along; ++j) {
      // Chunks are inside of the view or not; or as many bytes as are inside are read, which costs
      // more to ask for. What is not read becomes 0.
      llvm::Value *bytes = block_.i32(kChunk), *column_there = ir_.getTrue();
      if (!whole && !source.inside[source.column]) {
        llvm::Value* extent = source.view.extents[source.column];
        llvm::Value* at = first_place(source.column, j * threads * source.elements());
        column_there = ir_.CreateICmpULT(at, extent);
        if (!source.even) {
          llvm::Value* left = ir_.CreateBinaryIntrinsic(
              llvm::Intrinsic::smin, ir_.CreateSub(extent, at), block_.i64(source.elements()));
          bytes = ir_.CreateTrunc(ir_.CreateMul(left, block_.i64(operand.width)), ir_.getInt32Ty());
        }
      }
      llvm::Value* c = ir_.CreateAdd(chunk, block_.i32(j * threads));
      llvm::Value* first_target = ir_.CreateAdd(operand.base, swizzled(operand, own_row, c));
      for (std::int64_t i = 0; i < down; ++i) {
        llvm::Value *at = from, *there = column_there;
        for (std::size_t axis = 0; axis < rank; ++axis) {
          if (axis == source.column) continue;
          const std::int64_t further = part(axis, i * row_step);
          at = ir_.CreateAdd(at, bytes_of(block_.i64(further), axis));
          if (whole || source.inside[axis]) continue;
          there = ir_.CreateAnd(
              there, ir_.CreateICmpULT(first_place(axis, further), source.view.extents[axis]));
        }
        at = ir_.CreateAdd(at, block_.i64(j * threads * kChunk));
        // Eight rows further, chunks are exchanged in the same way again.
        constexpr std::int64_t kSame = 8;
        llvm::Value* row = ir_.CreateAdd(own_row, block_.i32(i * row_step));
        llvm::Value* target =
            row_step % kSame == 0
                ? ir_.CreateAdd(first_target, block_.i32(i * row_step * operand.panel_width()))
                : ir_.CreateAdd(operand.base, swizzled(operand, row, c));
        if (there == ir_.getTrue() && bytes == block_.i32(kChunk)) {
          block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16,
                           {block_.shared(target), global(at)});
        } else {
          // Of no bytes, the address is not looked at.
          block_.intrinsic(
              llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s,
              {block_.shared(target), global(at), ir_.CreateSelect(there, bytes, block_.i32(0))});
        }
      }
    }
  };
  if (chunks >= threads) return copy_all();
  block_.when(ir_.CreateICmpULT(block_.thread(), block_.i32(chunks)), copy_all);
}

void Emitter::copy_elements(const Origin& source) {
  const SharedOperand& operand = source.operand;
  llvm::Type* wide = ir_.getInt64Ty();
  block_.repeat(block_.thread(), source.chunks(), block_.threads(), [&](llvm::Value* number) {
    llvm::Value* row = ir_.CreateLShr(number, block_.i32(index_bits(source.per_row())));
    llvm::Value* chunk = ir_.CreateAnd(number, block_.i32(source.per_row() - 1));
    llvm::Value *place = block_.i64(0), *there = ir_.getTrue();
    for (std::size_t axis = 0; axis < source.shape.size(); ++axis) {
      if (axis == source.column) continue;
      llvm::Value* part = ir_.CreateAnd(ir_.CreateLShr(row, block_.i32(source.shift(axis))),
                                        block_.i32(source.shape[axis] - 1));
      llvm::Value* at = ir_.CreateAdd(source.start[axis], ir_.CreateZExt(part, wide));
      place = ir_.CreateAdd(place, ir_.CreateMul(at, source.view.strides[axis]));
      there = ir_.CreateAnd(there, ir_.CreateICmpULT(at, source.view.extents[axis]));
    }
    llvm::Value* first =
        ir_.CreateAdd(source.start[source.column],
                      ir_.CreateZExt(ir_.CreateMul(chunk, block_.i32(source.elements())), wide));
    Pieces values;
    for (std::int64_t i = 0; i < source.elements(); ++i) {
      llvm::Value* at = ir_.CreateAdd(first, block_.i64(i));
      llvm::Value* inside =
          ir_.CreateAnd(there, ir_.CreateICmpULT(at, source.view.extents[source.column]));
      llvm::Value* address = ir_.CreateAdd(
          source.view.base, ir_.CreateMul(ir_.CreateAdd(place, at), block_.i64(operand.width)));
      address = ir_.CreateSelect(inside, address, nowhere());
      const auto width = static_cast<unsigned>(operand.width);
      values.push_back(
          ir_.CreateAlignedLoad(ir_.getIntNTy(8 * width), global(address), llvm::Align(width)));
    }
    ir_.CreateAlignedStore(
        block_.pack(values, word_type(operand.width)),
        block_.shared(ir_.CreateAdd(operand.base, swizzled(operand, row, chunk))),
        llvm::Align(kChunk));
  });
}

void Emitter::copy_round(const Operation& op, const Ahead& ahead, const Copy& copy,
                         const std::function<void(CopiedBy)>& then) {
  std::vector<Origin> sources;
  for (const Ring& ring : ahead.rings) sources.push_back(origin_of(op, ring, copy));
  const auto chunks = [&](bool whole) {
    for (const Origin& source : sources) copy_chunks(source, whole);
    then(CopiedBy::Chunks);
    return Pieces{};
  };
  const auto elements = [&] {
    for (const Origin& source : sources) copy_elements(source);
    then(CopiedBy::Elements);
    return Pieces{};
  };
  const auto some = [&] {
    return either(
        copy.fits.aligned, [&] { return chunks(false); }, elements);
  };
  if (copy.fits.whole == ir_.getFalse()) {
    some();
    return;
  }
  either(
      copy.fits.whole, [&] { return chunks(true); }, some);
}

void Emitter::copy_ahead(const Operation& op, const Ahead& ahead, const Copy& copy) {
  block_.when(ir_.CreateICmpSLT(copy.index, scalar(op.in[1])),
              [&] { copy_round(op, ahead, copy, [](CopiedBy) {}); });
  block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {});
}

}  // namespace tessera::codegen::ptx
