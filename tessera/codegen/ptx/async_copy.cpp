#include "tessera/codegen/ptx/async_copy.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>

#include "tessera/codegen/ptx/instructions.h"
#include "tessera/codegen/ptx/matmul_writer.h"

// Copies from global memory into the stages of a multi-stage buffer. Chunks of 16 bytes are
// distributed over the threads row by row, by cp.async; unaligned rows are copied by a loop over
// elements.

namespace tessera::codegen::ptx {

void AsyncCopy::place_stages(const tile::gpu::Stages& stages) {
  for (const StagedOperand& staged : stages.pipeline.operands)
    stage_offsets_[staged.load] = block_.i32(stages.offset + staged.offset);
}

void AsyncCopy::place_common_stages(const tile::gpu::Stages& stages) {
  for (const StagedOperand& staged : stages.pipeline.operands)
    stage_offsets_[staged.load] = block_.common(block_.i32(stages.offset + staged.offset));
}

void AsyncCopy::bind_stage(const LoopPipeline& pipeline, llvm::Value* stage) {
  for (const StagedOperand& staged : pipeline.operands)
    values_.buffers[operation(staged.load).out[0]] = {
        staged.panels, ir_.CreateAdd(stage_offsets_.at(staged.load), stage)};
}

AsyncCopy::Conditions AsyncCopy::conditions_of(const Operation& op, const LoopPipeline& pipeline) {
  const auto [from, to, step, may_wrap] = bounds_.range_of(op);
  llvm::Type* wide = ir_.getInt64Ty();
  llvm::Value* one = llvm::ConstantInt::get(step->getType(), 1);
  llvm::Value* iterations =
      ir_.CreateSDiv(ir_.CreateSub(ir_.CreateSub(to, from), one),
                     ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, step, one));
  llvm::Value* last = ir_.CreateAdd(from, ir_.CreateMul(iterations, step));
  llvm::Value *aligned = ir_.getTrue(), *whole = ir_.getTrue();
  for (const StagedOperand& staged : pipeline.operands) {
    const Operation& load = kernel_.ops[staged.load];
    const View& view = this->view(load.in[0]);
    const tile::Extents& shape = type(load.out[0]).shape;
    const auto at = [&](std::size_t axis, llvm::Value* index) {
      return ir_.CreateSExt(evaluator_.scalar_at(op, load.in[1 + axis], index), wide);
    };
    llvm::Value* parts = block_.i64(0);
    if (loop_dependence(planned_, op, load.in[1 + staged.column]) !=
        tile::gpu::LoopDependence::Known)
      parts = ir_.CreateOr(at(staged.column, from), at(staged.column, ir_.CreateAdd(from, step)));
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (axis != staged.column) parts = ir_.CreateOr(parts, view.strides[axis]);
    parts = ir_.CreateOr(ir_.CreateMul(parts, block_.i64(staged.panels.width)), view.base);
    aligned = ir_.CreateAnd(
        aligned, ir_.CreateICmpEQ(ir_.CreateAnd(parts, block_.i64(kChunk - 1)), block_.i64(0)));
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (held_extent(shape[axis]) != shape[axis]) whole = ir_.getFalse();
      if (staged.inside[axis]) continue;
      if (loop_dependence(planned_, op, load.in[1 + axis]) == tile::gpu::LoopDependence::Known) {
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

AsyncCopy::Origin AsyncCopy::origin_of(const Operation& op, const StagedOperand& staged,
                                       const Copy& copy) {
  const Operation& load = kernel_.ops[staged.load];
  std::vector<llvm::Value*> start;
  for (std::size_t axis = 0; axis < type(load.out[0]).shape.size(); ++axis)
    start.push_back(
        ir_.CreateSExt(evaluator_.scalar_at(op, load.in[1 + axis], copy.index), ir_.getInt64Ty()));
  return origin_of(staged, std::move(start),
                   ir_.CreateAdd(stage_offsets_.at(staged.load), copy.stage));
}

AsyncCopy::Origin AsyncCopy::origin_here(const StagedOperand& staged, llvm::Value* base) {
  const Operation& load = kernel_.ops[staged.load];
  std::vector<llvm::Value*> start;
  for (std::size_t axis = 0; axis < type(load.out[0]).shape.size(); ++axis)
    start.push_back(ir_.CreateSExt(scalar(load.in[1 + axis]), ir_.getInt64Ty()));
  return origin_of(staged, std::move(start), base);
}

AsyncCopy::Origin AsyncCopy::origin_of(const StagedOperand& staged, std::vector<llvm::Value*> start,
                                       llvm::Value* base) {
  const Operation& load = kernel_.ops[staged.load];
  Origin source{
      .view = view(load.in[0]),
      .shape = {},
      .ends = {},
      .operand = {staged.panels, base},
      .column = staged.column,
      .start = std::move(start),
      .inside = {},
      .even = type(load.in[0]).shape[staged.column] != tile::kDynamic &&
              type(load.in[0]).shape[staged.column] % (kChunk / staged.panels.width) == 0};
  const tile::Extents& shape = type(load.out[0]).shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    source.shape.push_back(held_extent(shape[axis]));
    const bool all = source.shape.back() == shape[axis];
    llvm::Value* end = source.view.extents[axis];
    source.inside.push_back(staged.inside[axis] && all);
    source.ends.push_back(all ? end
                              : ir_.CreateBinaryIntrinsic(
                                    llvm::Intrinsic::smin, end,
                                    ir_.CreateAdd(source.start[axis], block_.i64(shape[axis]))));
  }
  return source;
}

// The addresses of a thread's chunks differ between iterations by one offset, which is uniform over
// the block; so are the bounds. All else is computed before the loop.
void AsyncCopy::copy_chunks(const Origin& source, bool whole) {
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

  std::vector<llvm::Value*> own;  // position in the tile of the thread's first chunk
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
  // The offset of a row has no bits in common with the thread's own row: positions add up.
  const auto part = [&](std::size_t axis, std::int64_t row) {
    return row >> source.shift(axis) & (source.shape[axis] - 1);
  };
  // With fewer threads than chunks in a row, a thread advances along the row first.
  const std::int64_t along = std::max<std::int64_t>(1, per_row / threads);
  const std::int64_t down = std::max<std::int64_t>(1, chunks / std::max(threads, per_row));
  const std::int64_t row_step = std::max<std::int64_t>(1, threads / per_row);
  const auto copy_all = [&] {
    for (std::int64_t j = 0; j < along; ++j) {
      // Chunks are in bounds or out of bounds as a whole; or the number of bytes in bounds is
      // computed, which costs more. The rest is filled with zeros.
      llvm::Value *bytes = block_.i32(kChunk), *column_there = ir_.getTrue();
      if (!whole && !source.inside[source.column]) {
        llvm::Value* extent = source.ends[source.column];
        llvm::Value* at = first_place(source.column, j * threads * source.elements());
        column_there = ir_.CreateICmpULT(at, extent);
        if (!source.even) {
          llvm::Value* left = ir_.CreateBinaryIntrinsic(
              llvm::Intrinsic::smin, ir_.CreateSub(extent, at), block_.i64(source.elements()));
          bytes = ir_.CreateTrunc(ir_.CreateMul(left, block_.i64(operand.width)), ir_.getInt32Ty());
        }
      }
      llvm::Value* c = ir_.CreateAdd(chunk, block_.i32(j * threads));
      llvm::Value* first_target =
          ir_.CreateAdd(operand.base, swizzled(block_, operand, own_row, c));
      for (std::int64_t i = 0; i < down; ++i) {
        llvm::Value *at = from, *there = column_there;
        for (std::size_t axis = 0; axis < rank; ++axis) {
          if (axis == source.column) continue;
          const std::int64_t further = part(axis, i * row_step);
          at = ir_.CreateAdd(at, bytes_of(block_.i64(further), axis));
          if (whole || source.inside[axis]) continue;
          there = ir_.CreateAnd(there,
                                ir_.CreateICmpULT(first_place(axis, further), source.ends[axis]));
        }
        at = ir_.CreateAdd(at, block_.i64(j * threads * kChunk));
        // The swizzle repeats after eight rows.
        constexpr std::int64_t kSame = 8;
        llvm::Value* row = ir_.CreateAdd(own_row, block_.i32(i * row_step));
        llvm::Value* target =
            row_step % kSame == 0
                ? ir_.CreateAdd(first_target, block_.i32(i * row_step * operand.panel_width()))
                : ir_.CreateAdd(operand.base, swizzled(block_, operand, row, c));
        if (there == ir_.getTrue() && bytes == block_.i32(kChunk)) {
          block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16,
                           {block_.shared(target), global(at)});
        } else {
          // The address of a copy of 0 bytes is not accessed.
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

namespace {

// Unaligned load of 16 bytes from the two aligned chunks that contain them. Each has a byte of
// them, so that neither access leaves the allocation.
Pieces loaded_across(Block& block, const Pieces& addresses) {
  llvm::IRBuilder<>& ir = block.ir;
  auto* words = llvm::FixedVectorType::get(ir.getInt32Ty(), 4);
  struct Two {
    llvm::Value *low, *high, *shift;
  };
  std::vector<Two> loaded;  // all loads are issued before the first wait
  for (llvm::Value* address : addresses) {
    llvm::Value* shift = ir.CreateAnd(address, block.i64(kChunk - 1));
    llvm::Value* low = ir.CreateSub(address, shift);
    llvm::Value* high =
        ir.CreateSelect(ir.CreateIsNull(shift), low, ir.CreateAdd(low, block.i64(kChunk)));
    const auto load = [&](llvm::Value* from) {
      return ir.CreateAlignedLoad(words, ir.CreateIntToPtr(from, ir.getPtrTy(kGlobal)),
                                  llvm::Align(kChunk));
    };
    loaded.push_back({load(low), load(high), ir.CreateTrunc(shift, ir.getInt32Ty())});
  }
  Pieces made;
  for (const Two& two : loaded) {
    Pieces all;
    for (llvm::Value* half : {two.low, two.high})
      for (std::uint64_t i = 0; i < 4; ++i) all.push_back(ir.CreateExtractElement(half, i));
    // Selects words by the upper bits of the distance, then bits by the lower ones.
    for (const std::int64_t bytes : {8, 4}) {
      llvm::Value* further = ir.CreateIsNotNull(ir.CreateAnd(two.shift, block.i32(bytes)));
      const auto by = static_cast<std::size_t>(bytes / 4);
      Pieces moved;
      for (std::size_t i = 0; i + by < all.size(); ++i)
        moved.push_back(ir.CreateSelect(further, all[i + by], all[i]));
      all = std::move(moved);
    }
    llvm::Value* bits = ir.CreateMul(ir.CreateAnd(two.shift, block.i32(3)), block.i32(8));
    llvm::Value* result = llvm::PoisonValue::get(words);
    for (std::uint64_t i = 0; i < 4; ++i) {
      llvm::Value* word =
          ir.CreateIntrinsic(llvm::Intrinsic::fshr, {ir.getInt32Ty()}, {all[i + 1], all[i], bits});
      result = ir.CreateInsertElement(result, word, i);
    }
    made.push_back(result);
  }
  return made;
}

}  // namespace

// Unaligned rows. Producer threads have registers for two chunks at once, threads that hold
// accumulators for one.
void AsyncCopy::copy_elements(const Origin& source) {
  const SharedOperand& operand = source.operand;
  llvm::Type* wide = ir_.getInt64Ty();
  auto* words = llvm::FixedVectorType::get(ir_.getInt32Ty(), 4);
  const std::int64_t threads = block_.threads();
  const std::int64_t at_once =
      mapping_.warp_specialized && source.chunks() % (2 * threads) == 0 ? 2 : 1;
  struct Piece {
    llvm::Value *place, *first, *there, *target;
  };
  const auto piece_of = [&](llvm::Value* number) {
    llvm::Value* row = ir_.CreateLShr(number, block_.i32(index_bits(source.per_row())));
    llvm::Value* chunk = ir_.CreateAnd(number, block_.i32(source.per_row() - 1));
    Piece piece{
        .place = block_.i64(0), .first = nullptr, .there = ir_.getTrue(), .target = nullptr};
    for (std::size_t axis = 0; axis < source.shape.size(); ++axis) {
      if (axis == source.column) continue;
      llvm::Value* part = ir_.CreateAnd(ir_.CreateLShr(row, block_.i32(source.shift(axis))),
                                        block_.i32(source.shape[axis] - 1));
      llvm::Value* at = ir_.CreateAdd(source.start[axis], ir_.CreateZExt(part, wide));
      piece.place = ir_.CreateAdd(piece.place, ir_.CreateMul(at, source.view.strides[axis]));
      piece.there = ir_.CreateAnd(piece.there, ir_.CreateICmpULT(at, source.ends[axis]));
    }
    piece.first =
        ir_.CreateAdd(source.start[source.column],
                      ir_.CreateZExt(ir_.CreateMul(chunk, block_.i32(source.elements())), wide));
    piece.target = ir_.CreateAdd(operand.base, swizzled(block_, operand, row, chunk));
    return piece;
  };
  const auto inside = [&](const Piece& piece, std::int64_t element) {
    llvm::Value* at = ir_.CreateAdd(piece.first, block_.i64(element));
    return ir_.CreateAnd(piece.there, ir_.CreateICmpULT(at, source.ends[source.column]));
  };
  const auto address = [&](const Piece& piece, std::int64_t element) {
    llvm::Value* at = ir_.CreateAdd(ir_.CreateAdd(piece.place, piece.first), block_.i64(element));
    return ir_.CreateAdd(source.view.base, ir_.CreateMul(at, block_.i64(operand.width)));
  };
  const auto one_by_one = [&](const Piece& piece) {
    const auto width = static_cast<unsigned>(operand.width);
    Pieces values;
    for (std::int64_t i = 0; i < source.elements(); ++i) {
      llvm::Value* from = ir_.CreateSelect(inside(piece, i), address(piece, i), nowhere());
      values.push_back(
          ir_.CreateAlignedLoad(ir_.getIntNTy(8 * width), global(from), llvm::Align(width)));
    }
    return ir_.CreateBitCast(block_.pack(values, word_type(operand.width)), words);
  };
  block_.repeat(block_.thread(), source.chunks(), threads * at_once, [&](llvm::Value* number) {
    std::vector<Piece> pieces;
    llvm::Value* whole = ir_.getTrue();
    for (std::int64_t i = 0; i < at_once; ++i) {
      pieces.push_back(piece_of(ir_.CreateAdd(number, block_.i32(i * threads))));
      whole = ir_.CreateAnd(whole, inside(pieces.back(), 0));
      whole = ir_.CreateAnd(whole, inside(pieces.back(), source.elements() - 1));
    }
    const auto at_any = [&] {
      Pieces addresses;
      for (const Piece& piece : pieces) addresses.push_back(address(piece, 0));
      return loaded_across(block_, addresses);
    };
    const auto by_element = [&] {
      Pieces loaded;
      for (const Piece& piece : pieces) loaded.push_back(one_by_one(piece));
      return loaded;
    };
    const Pieces loaded = either(whole, at_any, by_element);
    for (std::size_t i = 0; i < pieces.size(); ++i)
      ir_.CreateAlignedStore(loaded[i], block_.shared(pieces[i].target), llvm::Align(kChunk));
  });
}

void AsyncCopy::copy_tile_by_threads(const StagedOperand& staged, llvm::Value* base) {
  copy_elements(origin_here(staged, base));
}

// Copies the chunks of a thread in a loop: short code for a rare case.
void AsyncCopy::copy_in_turn(const Origin& source) {
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
      there = ir_.CreateAnd(there, ir_.CreateICmpULT(at, source.ends[axis]));
    }
    llvm::Value* end = source.ends[source.column];
    llvm::Value* first =
        ir_.CreateAdd(source.start[source.column],
                      ir_.CreateZExt(ir_.CreateMul(chunk, block_.i32(source.elements())), wide));
    there = ir_.CreateAnd(there, ir_.CreateICmpULT(first, end));
    llvm::Value* left = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateSub(end, first),
                                                  block_.i64(source.elements()));
    llvm::Value* bytes =
        ir_.CreateTrunc(ir_.CreateMul(left, block_.i64(operand.width)), ir_.getInt32Ty());
    llvm::Value* from = ir_.CreateAdd(
        source.view.base, ir_.CreateMul(ir_.CreateAdd(place, first), block_.i64(operand.width)));
    block_.intrinsic(
        llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s,
        {block_.shared(ir_.CreateAdd(operand.base, swizzled(block_, operand, row, chunk))),
         global(from), ir_.CreateSelect(there, bytes, block_.i32(0))});
  });
}

void AsyncCopy::copy_iteration(const Operation& op, const Operands& operands, const Copy& copy,
                               const std::function<void(CopiedBy)>& then) {
  std::vector<Origin> sources;
  for (const StagedOperand& staged : operands) sources.push_back(origin_of(op, staged, copy));
  // Copies by threads where tensor maps could not be encoded are rare.
  const bool is_rare = mapping_.maps > 0;
  const auto chunks = [&](bool whole) {
    for (const Origin& source : sources) {
      if (is_rare) {
        copy_in_turn(source);
      } else {
        copy_chunks(source, whole);
      }
    }
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
  if (is_rare || copy.fits.whole == ir_.getFalse()) {
    some();
    return;
  }
  either(
      copy.fits.whole, [&] { return chunks(true); }, some);
}

// Shared memory written by cp.async is visible to wgmma once the copy group is complete; that
// written by stores needs a proxy fence.
void AsyncCopy::prefetch_iteration(const Operation& op, const Operands& operands, const Copy& copy,
                                   bool is_published) {
  block_.when(ir_.CreateICmpSLT(copy.index, bounds_.range_of(op).to), [&] {
    copy_iteration(op, operands, copy, [&](CopiedBy by) {
      if (is_published && by == CopiedBy::Elements) block_.publish();
    });
  });
}

void AsyncCopy::commit() {
  block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {});
}

}  // namespace tessera::codegen::ptx
