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

bool Emitter::is_inside(const Operation& loop, tile::OpId op) const {
  const std::vector<tile::OpId>& body = loop.regions[0].ops;
  return std::find(body.begin(), body.end(), op) != body.end();
}

Emitter::Course Emitter::course_of(const Operation& loop, ValueId id) const {
  const std::vector<ValueId>& params = loop.regions[0].params;
  if (id == params[0]) return Course::Linear;
  if (!definitions_[id]) {
    const bool carried = std::find(params.begin(), params.end(), id) != params.end();
    return carried ? Course::Unknown : Course::Fixed;
  }
  if (!is_inside(loop, *definitions_[id])) return Course::Fixed;
  const Operation& op = kernel_.ops[*definitions_[id]];
  if (op.code == Code::Const) return Course::Fixed;
  if (!type(id).is_scalar() ||
      (op.code != Code::Map && op.code != Code::Hint && op.code != Code::Cast))
    return Course::Unknown;
  Course course = Course::Fixed;
  int vary = 0;
  for (const ValueId in : op.in) {
    const Course of = course_of(loop, in);
    course = std::max(course, of);
    vary += of != Course::Fixed ? 1 : 0;
  }
  if (course != Course::Linear) return course;
  // In a line with the index, the first and the last round tell the bounds of all.
  const bool sum =
      op.code == Code::Map && (op.function == Function::Add || op.function == Function::Sub);
  const bool multiple = op.code == Code::Map && op.function == Function::Mul && vary == 1;
  const bool same =
      op.code == Code::Hint ||
      (op.code == Code::Cast && type(id).dtype == DType::I64 && type(op.in[0]).dtype == DType::I32);
  return sum || multiple || same ? Course::Linear : Course::Known;
}

bool Emitter::is_multiple(ValueId id, std::int64_t of) const {
  if (!definitions_[id]) return false;
  const Operation& op = kernel_.ops[*definitions_[id]];
  const auto is = [&](ValueId in) { return is_multiple(in, of); };
  if (op.code == Code::Const) return op.literal.integer % of == 0;
  if (op.code != Code::Map) return false;
  switch (op.function) {
    case Function::Mul: return is(op.in[0]) || is(op.in[1]);
    case Function::Add:
    case Function::Sub:
    case Function::Rem: return is(op.in[0]) && is(op.in[1]);
    default: return false;
  }
}

llvm::Value* Emitter::scalar_at(const Operation& loop, ValueId id, llvm::Value* index) {
  if (id == loop.regions[0].params[0]) return index;
  if (!definitions_[id] || !is_inside(loop, *definitions_[id])) return scalar(id);
  const Operation& op = kernel_.ops[*definitions_[id]];
  if (op.code == Code::Const) return constant(type(id), op.literal);
  std::vector<Pieces> operands;
  for (const ValueId in : op.in) operands.push_back({scalar_at(loop, in, index)});
  return elementwise(op, std::move(operands)).front();
}

/// The load in the loop whose tile a value is, as it is or turned or without axes of one element.
std::optional<tile::OpId> Emitter::loaded_from(const Operation& loop, ValueId id) const {
  for (bool first = true; definitions_[id]; first = false) {
    if (!first && uses_[id] != 1 && kernel_.ops[*definitions_[id]].code != Code::Vload) return {};
    const Operation& op = kernel_.ops[*definitions_[id]];
    if (!is_inside(loop, *definitions_[id])) return {};
    if (op.code == Code::Vload) return *definitions_[id];
    const tile::Extents &from = type(op.in[0]).shape, &to = type(id).shape;
    const bool turned = op.code == Code::Permute && from.size() == 2;
    // The rows of a box, one after the other; or the last two axes, where others have one element.
    const bool squeezed = op.code == Code::Reshape && to.size() >= 2 && from.size() > 2 &&
                          (to.back() == from.back() ||
                           (to.size() == 2 && std::equal(to.begin(), to.end(), from.end() - 2)));
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
  const int width = byte_width(tile.dtype);
  if (rank < 2 || reads != uses_[load.out[0]]) return {};
  if (definitions_[load.in[0]] && is_inside(loop, *definitions_[load.in[0]])) return {};
  if (load.literal.number != 0 || std::signbit(load.literal.number)) return {};
  Ring ring{.load = id, .operand = {}, .offset = 0, .column = rank - 1, .inside = {}};
  if (view.strides[ring.column] != 1) --ring.column;
  if (view.strides[ring.column] != 1) return {};
  // The rows of a matrix that lies column by column are one axis.
  const std::int64_t columns = tile.shape[ring.column], rows = tile.count() / columns;
  if (ring.column != rank - 1 && tile.shape.back() != rows) return {};
  constexpr std::int64_t kLeast = 16;
  if (rows < kLeast || columns < kLeast ||
      !std::all_of(tile.shape.begin(), tile.shape.end(), is_power_of_two))
    return {};
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const Course course = course_of(loop, load.in[1 + axis]);
    if (course == Course::Unknown) return {};
    const auto gap = bounds_.gap(load, axis);
    ring.inside.push_back(gap && bounds_.not_negative(*gap) && bounds_.begins_inside(load, axis));
    // Whether 16 bytes fit is asked once, before the loop.
    if (axis == ring.column && course == Course::Known &&
        !is_multiple(load.in[1 + axis], kChunk / width))
      return {};
  }
  ring.operand = {.base = nullptr,
                  .column_axis = ring.column == rank - 1 ? 1 : 0,
                  .rows = rows,
                  .columns = columns,
                  .width = width};
  return ring;
}

std::optional<Emitter::Ahead> Emitter::find_ahead(const Operation& op) {
  if (any_writes(op)) return {};    // what is read must not come before what is written
  std::map<tile::OpId, int> reads;  // of loads, by products
  for (const tile::OpId id : op.regions[0].ops) {
    const Operation& dot = kernel_.ops[id];
    if (dot.code != Code::Dot) continue;
    const Product product = plan_.means(dot);
    if (product == Product::Scalars || product == Product::Byte) continue;
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
  if (!filled_by_others(op)) block_.barrier();  // the ring has been read by all
  return carried;
}

Pieces Emitter::rounds(const Operation& op, const Ahead* given) {
  const tile::Region& body_region = op.regions[0];
  const bool writes = any_writes(op);
  llvm::Value *from = scalar(op.in[0]), *to = scalar(op.in[1]), *step = scalar(op.in[2]);
  const auto later = [&](llvm::Value* index, int rounds) {
    return ir_.CreateAdd(
        index, ir_.CreateMul(step, llvm::ConstantInt::get(step->getType(),
                                                          static_cast<std::uint64_t>(rounds))));
  };
  Ahead ahead;
  Fits fits;
  std::int64_t reserved = 0;
  const bool alone = given != nullptr && !filled_by_others(op);
  // The round that is copied begins in the stage that all threads have left: that of the last
  // round, or with a product that goes on, of the one before it.
  const int left = given != nullptr && !given->pending.empty() ? 2 : 1;
  const int in_flight = stages_ - left;
  if (given != nullptr) ahead = *given;
  if (given != nullptr && !alone) await_turn();
  if (alone) {
    fits = how_it_fits(op, ahead);
    reserved = ahead.bytes * stages_;
    const std::int64_t offset = block_.reserve(reserved);
    for (Ring& ring : ahead.rings) ring.operand.base = block_.i32(offset + ring.offset);
    block_.barrier();  // what was there has been read
    for (int stage = 0; stage < in_flight; ++stage)
      copy_ahead(op, ahead, {later(from, stage), block_.i32(stage * ahead.bytes), fits});
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
  if (alone) {
    block_.intrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {block_.i32(in_flight - 1)});
    if (plan_.any_warpgroups()) publish();
    block_.barrier();
    const auto further = [&](int stages) {
      const std::int64_t all = ahead.bytes * stages_, by = ahead.bytes * stages;
      return ir_.CreateSelect(ir_.CreateICmpUGE(stage, block_.i32(all - by)),
                              ir_.CreateSub(stage, block_.i32(all - by)),
                              ir_.CreateAdd(stage, block_.i32(by)));
    };
    copy_ahead(op, ahead, {later(index, in_flight), further(in_flight), fits});
    next_stage = further(1);
  } else if (given != nullptr) {
    stage = arrived_stage();
  }
  for (const Ring& ring : ahead.rings) {
    SharedOperand operand = ring.operand;
    operand.base = ir_.CreateAdd(operand.base, stage);
    operands_[kernel_.ops[ring.load].out[0]] = operand;
  }
  std::swap(pending_, ahead.pending);
  define(body_region.params[0], index);
  bind({body_region.params.begin() + 1, body_region.params.end()}, current);
  region(body_region);
  Pieces next = error_ ? current : yields(body_region, op.out);
  // The product of the round before is done.
  if (given != nullptr && !alone) {
    leave_stage(ir_.CreateICmpNE(index, from));
    to_next_stage();
  }
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
  if (given != nullptr && !alone) pass_turn();
  if (ahead.pending.empty()) return current;
  Pieces sums = all_finished(op, ahead, current);
  if (!alone) leave_stage(ir_.CreateICmpSLT(from, to));
  return sums;
}

}  // namespace tessera::codegen::ptx
