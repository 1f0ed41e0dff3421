#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tessera/codegen/ptx/emitter.h"

// A loop whose products read tiles straight from memory keeps copies of the next rounds in flight:
// a ring of stages in shared memory, filled by cp.async, which no register passes through.

namespace tessera::codegen::ptx {
namespace {

bool is_power_of_two(std::int64_t x) {
  return std::has_single_bit(static_cast<std::uint64_t>(x));
}

}  // namespace

using tile::Code;
using tile::Function;

bool Emitter::follows_index(const Operation& loop, ValueId id) const {
  const std::vector<tile::OpId>& inside = loop.regions[0].ops;
  if (id == loop.regions[0].params[0]) return true;
  if (!definitions_[id]) {
    const auto& params = loop.regions[0].params;
    return std::find(params.begin(), params.end(), id) == params.end();
  }
  if (std::find(inside.begin(), inside.end(), *definitions_[id]) == inside.end()) return true;
  // In a line with the index, so that the first and the last round tell the bounds of all.
  const Operation& op = kernel_.ops[*definitions_[id]];
  const auto varies = [&](ValueId in) {
    return in == loop.regions[0].params[0] ||
           (definitions_[in] &&
            std::find(inside.begin(), inside.end(), *definitions_[in]) != inside.end() &&
            kernel_.ops[*definitions_[in]].code != Code::Const);
  };
  const bool sum =
      op.code == Code::Map && (op.function == Function::Add || op.function == Function::Sub);
  const bool multiple = op.code == Code::Map && op.function == Function::Mul &&
                        !(varies(op.in[0]) && varies(op.in[1]));
  const bool same =
      op.code == Code::Const || op.code == Code::Hint ||
      (op.code == Code::Cast && type(id).dtype == DType::I64 && type(op.in[0]).dtype == DType::I32);
  return (sum || multiple || same) && type(id).is_scalar() &&
         std::all_of(op.in.begin(), op.in.end(),
                     [&](ValueId in) { return follows_index(loop, in); });
}

llvm::Value* Emitter::scalar_at(const Operation& loop, ValueId id, llvm::Value* index) {
  if (id == loop.regions[0].params[0]) return index;
  const std::vector<tile::OpId>& inside = loop.regions[0].ops;
  if (!definitions_[id] ||
      std::find(inside.begin(), inside.end(), *definitions_[id]) == inside.end())
    return scalar(id);
  const Operation& op = kernel_.ops[*definitions_[id]];
  if (op.code == Code::Const) return constant(type(id), op.literal);
  std::vector<Pieces> operands;
  for (const ValueId in : op.in) operands.push_back({scalar_at(loop, in, index)});
  return elementwise(op, std::move(operands)).front();
}

/// The load in the loop whose tile a value is, as it is or turned or without axes of one element.
std::optional<tile::OpId> Emitter::loaded_from(const Operation& loop, ValueId id) const {
  const std::vector<tile::OpId>& body = loop.regions[0].ops;
  for (bool first = true; definitions_[id]; first = false) {
    if (!first && uses_[id] != 1 && kernel_.ops[*definitions_[id]].code != Code::Vload) return {};
    const Operation& op = kernel_.ops[*definitions_[id]];
    if (std::find(body.begin(), body.end(), *definitions_[id]) == body.end()) return {};
    if (op.code == Code::Vload) return *definitions_[id];
    const tile::Extents &from = type(op.in[0]).shape, &to = type(id).shape;
    const bool turned = op.code == Code::Permute && from.size() == 2;
    const bool squeezed = op.code == Code::Reshape && to.size() == 2 && from.size() > 2 &&
                          std::equal(to.begin(), to.end(), from.end() - 2) &&
                          type(id).count() == type(op.in[0]).count();
    if (!turned && !squeezed) return {};
    if (uses_[id] != 1) return {};
    id = op.in[0];
  }
  return {};
}

std::optional<Emitter::Ring> Emitter::ring_of(const Operation& loop, tile::OpId id,
                                              int reads) const {
  const Operation& load = kernel_.ops[id];
  const tile::Type &view = type(load.in[0]), &tile = type(load.out[0]);
  const std::size_t rank = tile.shape.size();
  if (rank < 2 || byte_width(tile.dtype) != 2 || reads != uses_[load.out[0]]) return {};
  if (definitions_[load.in[0]]) {  // the view must be there before the loop
    const std::vector<tile::OpId>& body = loop.regions[0].ops;
    if (std::find(body.begin(), body.end(), *definitions_[load.in[0]]) != body.end()) return {};
  }
  Ring ring{.load = id, .operand = {}, .offset = 0, .row = rank - 2, .column = rank - 1};
  if (view.strides[ring.column] != 1) std::swap(ring.row, ring.column);
  constexpr std::int64_t kLeast = 16;
  const std::int64_t rows = tile.shape[ring.row], columns = tile.shape[ring.column];
  const bool fits = view.strides[ring.column] == 1 && is_power_of_two(rows) &&
                    is_power_of_two(columns) && rows >= kLeast && columns >= kLeast &&
                    tile.count() == rows * columns && load.literal.number == 0 &&
                    !std::signbit(load.literal.number) &&
                    std::all_of(load.in.begin() + 1, load.in.end(),
                                [&](ValueId at) { return follows_index(loop, at); });
  if (!fits) return {};
  ring.operand = {.base = nullptr,
                  .column_axis = ring.column > ring.row ? 1 : 0,
                  .rows = rows,
                  .columns = columns,
                  .width = 2};
  return ring;
}

std::optional<Emitter::Ahead> Emitter::find_ahead(const Operation& op) {
  if (any_writes(op)) return {};    // what is read must not come before what is written
  std::map<tile::OpId, int> reads;  // of loads, by products
  for (const tile::OpId id : op.regions[0].ops) {
    const Operation& dot = kernel_.ops[id];
    if (dot.code != Code::Dot) continue;
    const Product product = product_of(kernel_, dot);
    if (product != Product::Half && product != Product::BFloat) continue;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
      if (const auto load = loaded_from(op, dot.in[side])) ++reads[*load];
  }
  Ahead ahead;
  for (const auto& [load, count] : reads) {
    if (auto ring = ring_of(op, load, count)) {
      ring->offset = ahead.bytes;
      ahead.bytes += shared_room(ring->operand.bytes());
      ahead.rings.push_back(*ring);
    }
  }
  if (ahead.rings.empty()) return {};
  // One more stage is in use while a product goes on.
  if (stages_ > 2) ahead.pending = find_pending(op, ahead);
  return ahead;
}

std::pair<llvm::Value*, llvm::Value*> Emitter::conditions(const Operation& op, const Ahead& ahead) {
  llvm::Value *from = scalar(op.in[0]), *to = scalar(op.in[1]), *step = scalar(op.in[2]);
  llvm::Type* wide = ir_.getInt64Ty();
  llvm::Value* one = llvm::ConstantInt::get(step->getType(), 1);
  llvm::Value* rounds = ir_.CreateSDiv(ir_.CreateSub(ir_.CreateSub(to, from), one),
                                       ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, step, one));
  llvm::Value* last = ir_.CreateAdd(from, ir_.CreateMul(rounds, step));
  llvm::Value *aligned = ir_.CreateICmpSLT(from, to), *whole = ir_.getTrue();
  for (const Ring& ring : ahead.rings) {
    const Operation& load = kernel_.ops[ring.load];
    const View& view = this->view(load.in[0]);
    const tile::Extents& shape = type(load.out[0]).shape;
    const std::size_t column = ring.column;
    const auto at = [&](std::size_t axis, llvm::Value* index) {
      return ir_.CreateSExt(scalar_at(op, load.in[1 + axis], index), wide);
    };
    llvm::Value* parts = ir_.CreateOr(at(column, from), at(column, ir_.CreateAdd(from, step)));
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (axis != column) parts = ir_.CreateOr(parts, view.strides[axis]);
    parts = ir_.CreateOr(ir_.CreateMul(parts, block_.i64(ring.operand.width)), view.base);
    aligned = ir_.CreateAnd(
        aligned, ir_.CreateICmpEQ(ir_.CreateAnd(parts, block_.i64(kChunk - 1)), block_.i64(0)));
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      for (llvm::Value* index : {from, last}) {
        llvm::Value* start = at(axis, index);
        llvm::Value* room = ir_.CreateSub(view.extents[axis], block_.i64(shape[axis]));
        whole = ir_.CreateAnd(whole, ir_.CreateAnd(ir_.CreateICmpSGE(start, block_.i64(0)),
                                                   ir_.CreateICmpSLE(start, room)));
      }
    }
  }
  return {aligned, ir_.CreateAnd(aligned, whole)};
}

void Emitter::copy_ring(const Operation& op, const Ring& ring, const Copy& copy) {
  const Operation& load = kernel_.ops[ring.load];
  const View& view = this->view(load.in[0]);
  const SharedOperand& operand = ring.operand;
  const std::size_t row = ring.row, column = ring.column;
  llvm::Type* wide = ir_.getInt64Ty();

  // Chunks are dealt to the threads row by row; a thread's next one lies whole rows further.
  const std::int64_t per_row = operand.row_bytes() / kChunk;
  const std::int64_t chunks = operand.rows * per_row;
  llvm::Value* chunk = ir_.CreateAnd(block_.thread(), block_.i32(per_row - 1));
  llvm::Value* own_row = ir_.CreateLShr(
      block_.thread(), block_.i32(std::countr_zero(static_cast<std::uint64_t>(per_row))));
  const std::int64_t elements = kChunk / operand.width;

  llvm::Value* first_row =
      ir_.CreateAdd(ir_.CreateSExt(scalar_at(op, load.in[1 + row], copy.index), wide),
                    ir_.CreateZExt(own_row, wide));
  llvm::Value* first_column =
      ir_.CreateAdd(ir_.CreateSExt(scalar_at(op, load.in[1 + column], copy.index), wide),
                    ir_.CreateZExt(ir_.CreateMul(chunk, block_.i32(elements)), wide));
  llvm::Value* place = ir_.CreateAdd(ir_.CreateMul(first_row, view.strides[row]), first_column);
  llvm::Value* there = ir_.getTrue();  // along the axes of one element
  for (std::size_t axis = 0; axis < view.extents.size(); ++axis) {
    if (axis == row || axis == column) continue;
    llvm::Value* at = ir_.CreateSExt(scalar_at(op, load.in[1 + axis], copy.index), wide);
    place = ir_.CreateAdd(place, ir_.CreateMul(at, view.strides[axis]));
    there = ir_.CreateAnd(there, ir_.CreateICmpULT(at, view.extents[axis]));
  }
  llvm::Value* from = ir_.CreateAdd(view.base, ir_.CreateMul(place, block_.i64(operand.width)));
  llvm::Value* base = ir_.CreateAdd(operand.base, copy.stage);

  const std::int64_t threads = block_.threads();
  // With fewer threads than chunks in a row, a thread walks along the row before it goes down.
  const std::int64_t along = std::max<std::int64_t>(1, per_row / threads);
  const std::int64_t down = std::max<std::int64_t>(1, chunks / std::max(threads, per_row));
  const std::int64_t row_step = std::max<std::int64_t>(1, threads / per_row);
  const auto copy_all = [&] {
    for (std::int64_t i = 0; i < down; ++i) {
      for (std::int64_t j = 0; j < along; ++j) {
        llvm::Value* source = ir_.CreateAdd(
            from, ir_.CreateMul(view.strides[row], block_.i64(i * row_step * operand.width)));
        source = ir_.CreateAdd(source, block_.i64(j * threads * kChunk));
        llvm::Value* r = ir_.CreateAdd(own_row, block_.i32(i * row_step));
        llvm::Value* c = ir_.CreateAdd(chunk, block_.i32(j * threads));
        llvm::Value* target = block_.shared(ir_.CreateAdd(base, swizzled(operand, r, c)));
        if (copy.whole) {
          block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16,
                           {target, global(source)});
          continue;
        }
        // As many bytes as are inside of the view are read; the others become 0.
        llvm::Value* at_row = ir_.CreateAdd(first_row, block_.i64(i * row_step));
        llvm::Value* at_column = ir_.CreateAdd(first_column, block_.i64(j * threads * elements));
        llvm::Value* left = ir_.CreateSub(view.extents[column], at_column);
        left = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, block_.i64(elements));
        llvm::Value* inside =
            ir_.CreateAnd(there, ir_.CreateAnd(ir_.CreateICmpULT(at_row, view.extents[row]),
                                               ir_.CreateICmpULT(at_column, view.extents[column])));
        llvm::Value* bytes = ir_.CreateTrunc(
            ir_.CreateMul(ir_.CreateSelect(inside, left, block_.i64(0)), block_.i64(operand.width)),
            ir_.getInt32Ty());
        source = ir_.CreateSelect(inside, source, nowhere());
        block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s,
                         {target, global(source), bytes});
      }
    }
  };
  if (chunks >= threads) return copy_all();
  block_.when(ir_.CreateICmpULT(block_.thread(), block_.i32(chunks)), copy_all);
}

void Emitter::copy_ahead(const Operation& op, const Ahead& ahead, const Copy& copy) {
  block_.when(ir_.CreateICmpSLT(copy.index, scalar(op.in[1])), [&] {
    for (const Ring& ring : ahead.rings) copy_ring(op, ring, copy);
  });
  block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {});
}

/// The carried registers after the last round, once the products that went on are done.
Pieces Emitter::all_finished(const Operation& op, const Ahead& ahead, Pieces carried) {
  const std::vector<ValueId>& yielded = kernel_.ops[op.regions[0].ops.back()].in;
  auto first = carried.begin();
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    const int count = type(op.out[i]).is_scalar() ? 1 : home(op.out[i]).registers();
    if (definitions_[yielded[i]] && ahead.pending.count(*definitions_[yielded[i]]) != 0) {
      const Pieces done = finished({first, first + count}, 0);
      std::copy(done.begin(), done.end(), first);
    }
    first += count;
  }
  block_.barrier();  // the ring has been read by all
  return carried;
}

Pieces Emitter::rounds(const Operation& op, const Ahead* given, bool whole) {
  const tile::Region& body_region = op.regions[0];
  const bool writes = any_writes(op);
  llvm::Value *from = scalar(op.in[0]), *to = scalar(op.in[1]), *step = scalar(op.in[2]);
  const auto later = [&](llvm::Value* index, int rounds) {
    return ir_.CreateAdd(
        index, ir_.CreateMul(step, llvm::ConstantInt::get(step->getType(),
                                                          static_cast<std::uint64_t>(rounds))));
  };
  Ahead ahead;
  std::int64_t reserved = 0;
  // The round that is copied begins in the stage that all threads have left: that of the last
  // round, or with a product that goes on, of the one before it.
  const int left = given != nullptr && !given->pending.empty() ? 2 : 1;
  const int in_flight = stages_ - left;
  if (given != nullptr) {
    ahead = *given;
    reserved = ahead.bytes * stages_;
    const std::int64_t offset = block_.reserve(reserved);
    for (Ring& ring : ahead.rings) ring.operand.base = block_.i32(offset + ring.offset);
    block_.barrier();  // what was there has been read
    for (int stage = 0; stage < in_flight; ++stage)
      copy_ahead(op, ahead, {later(from, stage), block_.i32(stage * ahead.bytes), whole});
  }

  Pieces start = flat({op.in.begin() + 3, op.in.end()}, op.out);
  start.push_back(from);
  start.push_back(block_.i32(0));
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock *header = block_.block("for"), *body = block_.block("body"),
                   *after = block_.block("after");
  ir_.CreateBr(header);
  ir_.SetInsertPoint(header);
  std::vector<llvm::PHINode*> carried = carry(start, before);
  llvm::Value *stage = carried.back(), *index = carried[carried.size() - 2];
  const Pieces current(carried.begin(), carried.end() - 2);
  ir_.CreateCondBr(ir_.CreateICmpSLT(index, to), body, after);
  block_.forget();
  forget_accesses(writes);

  ir_.SetInsertPoint(body);
  open_scope();
  auto operands_before = operands_;
  llvm::Value* next_stage = stage;
  if (given != nullptr) {
    block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {block_.i32(in_flight - 1)});
    if (plan_.any_warpgroups()) publish();
    block_.barrier();
    const auto further = [&](int stages) {
      const std::int64_t all = ahead.bytes * stages_, by = ahead.bytes * stages;
      return ir_.CreateSelect(ir_.CreateICmpUGE(stage, block_.i32(all - by)),
                              ir_.CreateSub(stage, block_.i32(all - by)),
                              ir_.CreateAdd(stage, block_.i32(by)));
    };
    copy_ahead(op, ahead, {later(index, in_flight), further(in_flight), whole});
    next_stage = further(1);
    for (const Ring& ring : ahead.rings) {
      SharedOperand operand = ring.operand;
      operand.base = ir_.CreateAdd(operand.base, stage);
      operands_[kernel_.ops[ring.load].out[0]] = operand;
    }
  }
  std::swap(pending_, ahead.pending);
  define(body_region.params[0], index);
  bind({body_region.params.begin() + 1, body_region.params.end()}, current);
  region(body_region);
  Pieces next = error_ ? current : yields(body_region, op.out);
  next.push_back(later(index, 1));
  next.push_back(next_stage);
  for (std::size_t i = 0; i < next.size(); ++i)
    carried[i]->addIncoming(next[i], ir_.GetInsertBlock());
  close_scope();
  operands_ = std::move(operands_before);
  ir_.CreateBr(header);
  ir_.SetInsertPoint(after);
  std::swap(pending_, ahead.pending);
  block_.release(reserved);
  block_.forget();
  forget_accesses(writes);
  return ahead.pending.empty() ? current : all_finished(op, ahead, current);
}

}  // namespace tessera::codegen::ptx
