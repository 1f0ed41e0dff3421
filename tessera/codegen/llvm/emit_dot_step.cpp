#include <algorithm>
#include <array>

#include "tessera/codegen/llvm/dot.h"
#include "tessera/codegen/llvm/emitter.h"
#include "tessera/codegen/llvm/nest_epilogue.h"

namespace tessera::codegen {

using tile::Operation;
using tile::cpu::AxisMap;
using tile::cpu::DotSource;
using tile::cpu::DotStep;

namespace {

/// Rows or columns of a tile that are in bounds.
struct Live {
  llvm::Value *low = nullptr, *high = nullptr;
  bool is_known_whole = true;
};

/// Matrix operand in memory with its part in bounds.
struct Matrix {
  DotOperand operand = {};
  Live live[2] = {};  // rows, columns

  /// Moves the start of the matrix to a row and a column.
  void start_at(Emitter& e, DType dtype, llvm::Value* row, llvm::Value* column) {
    llvm::IRBuilderBase& ir = e.ir;
    llvm::Value* offset =
        operand.panel > 0 ? ir.CreateAdd(ir.CreateMul(row, e.index(operand.panel)),
                                         ir.CreateMul(ir.CreateUDiv(column, e.index(operand.panel)),
                                                      operand.panel_stride))
                          : ir.CreateAdd(ir.CreateMul(row, operand.row_stride),
                                         ir.CreateMul(column, operand.column_stride));
    operand.base = ir.CreateGEP(e.memory_type(dtype), operand.base, offset);
  }
};

/// Clips by an axis of a view: positions [at, at + extent) of it are requested.
void clip(Emitter& e, Live& live, llvm::Value* at, llvm::Value* dim, std::int64_t unit = 1) {
  llvm::IRBuilderBase& ir = e.ir;
  const auto scaled = [&](llvm::Value* x) { return ir.CreateMul(x, e.index(unit)); };
  live.low = greatest_of(ir, live.low, scaled(ir.CreateNeg(at)));
  live.high = least_of(ir, live.high, scaled(ir.CreateSub(dim, at)));
  live.is_known_whole = false;
}

Matrix matrix_of(Emitter& e, const DotSource& source, const tile::Extents& shape) {
  llvm::IRBuilderBase& ir = e.ir;
  const tile::Type& type = e.type(source.value);
  Matrix matrix;
  for (std::size_t i = 0; i < 2; ++i) matrix.live[i] = {e.index(0), e.index(shape[i])};
  if (!source.vload) {
    matrix.operand.base = e.buffers[static_cast<std::size_t>(e.scheduled.buffer_of[source.value])];
    llvm::Value* strides[2] = {e.index(1), e.index(1)};
    std::int64_t offset = 0;
    const tile::Extents dense = tile::Type::view(type.dtype, type.shape).strides;
    for (std::size_t i = 0; i < source.map.size(); ++i) {
      offset += source.map[i].offset * dense[i];
      if (source.map[i].axis >= 0) strides[source.map[i].axis] = e.index(dense[i]);
    }
    matrix.operand.base =
        ir.CreateGEP(e.memory_type(type.dtype), matrix.operand.base, e.index(offset));
    matrix.operand.row_stride = strides[0];
    matrix.operand.column_stride = strides[1];
    return matrix;
  }

  const Operation& load = e.op(*source.vload);
  const ViewParts& view = e.views[load.in[0]];
  // Matrix axis that each axis of the view belongs to.
  std::vector<AxisMap> map = source.map;
  if (source.panel > 0) {
    map.assign(load.in.size() - 1, {-1, 0});
    map[0].axis = 1;
    map[1].axis = 0;
  }
  llvm::Value* offset = e.index(0);
  llvm::Value* strides[2] = {e.index(1), e.index(1)};  // of an axis of extent 1: any
  llvm::Value* exists = nullptr;
  for (std::size_t i = 0; i < map.size(); ++i) {
    llvm::Value* at = ir.CreateAdd(e.as_index(ir, load.in[i + 1]), e.index(map[i].offset));
    offset = ir.CreateAdd(offset, ir.CreateMul(at, view.strides[i]));
    if (map[i].axis >= 0) strides[map[i].axis] = view.strides[i];
    if (i < load.ints.size() && load.ints[i] == 1) continue;  // known to be in bounds
    if (map[i].axis >= 0) {
      const std::int64_t unit = source.panel == 0 ? 1 : i == 0 ? source.panel : source.k_group;
      clip(e, matrix.live[map[i].axis], at, view.shape[i], unit);
    } else if (source.panel == 0) {
      llvm::Value* inside = ir.CreateICmpULT(at, view.shape[i]);
      exists = exists == nullptr ? inside : ir.CreateAnd(exists, inside);
    }
  }
  if (exists != nullptr) {
    // Out of bounds along an axis that the matrix does not have: nothing of it is in bounds.
    matrix.live[0].high = ir.CreateSelect(exists, matrix.live[0].high, e.index(0));
    matrix.live[0].is_known_whole = false;
  }
  matrix.operand.base = ir.CreateGEP(e.memory_type(type.dtype), view.base, offset);
  matrix.operand.row_stride = strides[0];
  matrix.operand.column_stride = strides[1];
  matrix.operand.panel = source.panel;
  if (source.panel > 0) matrix.operand.panel_stride = view.strides[0];
  return matrix;
}

/// An iteration of a reduction loop (emit_reduction_loop.cpp): the first has no addend, and the
/// last stores to the view, where the part in bounds is the same for the view and the factors.
/// Returns whether it does.
llvm::Value* round_of_sums(Emitter& e, DotCall& call, std::array<const Live*, 2> inside) {
  llvm::IRBuilderBase& ir = e.ir;
  const Emitter::ReductionLoop& reduction_loop = *e.reduction_loop;
  const Operation& store = *reduction_loop.store;
  const ViewParts& view = e.views[store.in[0]];
  const std::int64_t extents[2] = {call.shape.m, call.shape.n};
  llvm::Value* stores =
      ir.CreateAnd(reduction_loop.is_last, ir.CreateICmpSGT(call.extents.k, e.index(0)));
  stores = ir.CreateAnd(stores, ir.CreateICmpEQ(view.strides[1], e.index(1)));
  llvm::Value* offset = e.index(0);
  for (std::size_t i = 0; i < 2; ++i) {
    llvm::Value* at = e.as_index(ir, store.in[i + 1]);
    Live stored{e.index(0), e.index(extents[i])};
    if (i >= store.ints.size() || store.ints[i] != 1) clip(e, stored, at, view.shape[i]);
    stores = ir.CreateAnd(stores, ir.CreateAnd(ir.CreateICmpEQ(stored.low, inside[i]->low),
                                               ir.CreateICmpEQ(stored.high, inside[i]->high)));
    offset = ir.CreateAdd(offset, ir.CreateMul(ir.CreateAdd(at, stored.low), view.strides[i]));
  }
  ir.CreateStore(ir.getTrue(), reduction_loop.ran);
  ir.CreateStore(stores, reduction_loop.stored);
  call.from = call.c;
  call.from_row_stride = call.c_row_stride;
  call.adds = ir.CreateNot(reduction_loop.is_first);
  call.c =
      ir.CreateSelect(stores, ir.CreateGEP(e.memory_type(call.shape.c), view.base, offset), call.c);
  call.c_row_stride = ir.CreateSelect(stores, view.strides[0], call.c_row_stride);
  return stores;
}

}  // namespace

void Emitter::emit_dot_step(const DotStep& step) {
  const Operation& o = op(step.op);
  const tile::Extents &a_shape = type(o.in[0]).shape, &b_shape = type(o.in[1]).shape;
  DotCall call;
  call.shape = {type(o.in[0]).dtype, type(o.in[1]).dtype, type(o.out[0]).dtype,
                a_shape[0],          b_shape[1],          a_shape[1]};
  Matrix a = matrix_of(*this, step.a, a_shape), b = matrix_of(*this, step.b, b_shape);
  const Live &rows = a.live[0], &columns = b.live[1];
  llvm::Value* k_low = greatest_of(ir, a.live[1].low, b.live[0].low);
  llvm::Value* k_high = least_of(ir, a.live[1].high, b.live[0].high);
  const bool is_known_whole = rows.is_known_whole && columns.is_known_whole &&
                              a.live[1].is_known_whole && b.live[0].is_known_whole;
  llvm::Value* c_offset = index(0);
  if (is_known_whole) {
    call.extents = {index(call.shape.m), index(call.shape.n), index(call.shape.k)};
  } else {
    const auto span = [&](llvm::Value* low, llvm::Value* high) {
      return greatest_of(ir, ir.CreateSub(high, low), index(0));
    };
    call.extents = {span(rows.low, rows.high), span(columns.low, columns.high),
                    span(k_low, k_high)};
    a.start_at(*this, call.shape.a, rows.low, k_low);
    b.start_at(*this, call.shape.b, k_low, columns.low);
    c_offset = ir.CreateAdd(ir.CreateMul(rows.low, index(call.shape.n)), columns.low);
  }
  call.a = a.operand;
  call.b = b.operand;
  call.plan = plan_dot(call.shape, machine, call.b.panel);
  dot_scratch_bytes = std::max(dot_scratch_bytes, call.plan.scratch_bytes);
  llvm::Value* c = buffers[static_cast<std::size_t>(step.out)];
  call.c = ir.CreateGEP(memory_type(call.shape.c), c, c_offset);
  call.c_row_stride = index(call.shape.n);
  call.accumulate = step.accumulate;
  call.scratch = dot_scratch;
  llvm::Value* begins = ir.getInt1(!step.accumulate);  // the buffer is uninitialized
  if (reduction_loop && reduction_loop->dot == &step) {
    llvm::Value* stores = round_of_sums(*this, call, {&rows, &columns});
    begins = ir.CreateAnd(reduction_loop->is_first, ir.CreateNot(stores));
  }
  if (begins != ir.getFalse() && !is_known_whole) {
    // Out-of-bounds factors count as zero, and so does their product.
    llvm::Value* is_whole =
        ir.CreateAnd(ir.CreateAnd(ir.CreateICmpEQ(call.extents.m, index(call.shape.m)),
                                  ir.CreateICmpEQ(call.extents.n, index(call.shape.n))),
                     ir.CreateICmpSGT(call.extents.k, index(0)));
    branch(ir.CreateAnd(begins, ir.CreateNot(is_whole)), [&] {
      // By explicit stores: LLVM would call memset.
      const std::int64_t bytes = type(o.out[0]).count() * byte_width(call.shape.c);
      const int line = 64;
      llvm::Value* zeros = llvm::Constant::getNullValue(memory_type(DType::U8, line));
      const std::int64_t whole = bytes / line * line;
      loop(index(0), index(whole), line, [&](llvm::Value* at) {
        ir.CreateAlignedStore(zeros, ir.CreateGEP(ir.getInt8Ty(), c, at), llvm::Align(16));
      });
      loop(index(whole), index(bytes), 1, [&](llvm::Value* at) {
        ir.CreateStore(ir.getInt8(0), ir.CreateGEP(ir.getInt8Ty(), c, at));
      });
    });
  }
  NestEpilogue epilogue(*this, step);
  if (step.epilogue && is_known_whole) call.epilogue = &epilogue;
  const std::int64_t finished = emit_dot(ir, call, machine);
  if (step.epilogue && finished < call.shape.n) emit_nest(*step.epilogue, finished);
}

}  // namespace tessera::codegen
