#include <algorithm>

#include "tessera/codegen/llvm/dot.h"
#include "tessera/codegen/llvm/emitter.h"

namespace tessera::codegen {

using tile::Operation;
using tile::cpu::AxisMap;
using tile::cpu::DotSource;
using tile::cpu::DotStep;

namespace {

/// A matrix in memory and how much of it is inside of its view.
struct Matrix {
  DotOperand operand = {};
  llvm::Value *rows = nullptr, *columns = nullptr;  // null: all of them
};

llvm::Value* least(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  return ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
}

Matrix packed(Emitter& e, const DotSource& source) {
  const Operation& load = e.op(*source.vload);
  const ViewParts& view = e.views[load.in[0]];
  llvm::Value *panel = e.as_index(e.ir, load.in[1]), *k = e.as_index(e.ir, load.in[2]);
  llvm::Value* offset =
      e.ir.CreateAdd(e.ir.CreateMul(panel, view.strides[0]), e.ir.CreateMul(k, view.strides[1]));
  const auto left = [&](int axis, llvm::Value* at) {
    llvm::Value* rest = e.ir.CreateSub(view.shape[static_cast<std::size_t>(axis)], at);
    return e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, rest, e.index(0));
  };
  Matrix matrix;
  matrix.operand.base = e.ir.CreateGEP(e.memory_type(e.type(load.out[0]).dtype), view.base, offset);
  matrix.operand.panel = source.panel;
  matrix.operand.panel_stride = view.strides[0];
  matrix.rows = left(1, k);
  matrix.columns = e.ir.CreateMul(left(0, panel), e.index(source.panel));
  return matrix;
}

Matrix matrix_of(Emitter& e, const DotSource& source) {
  if (source.panel > 0) return packed(e, source);
  llvm::IRBuilderBase& ir = e.ir;
  const tile::Type& type = e.type(source.value);
  ViewParts view;
  std::vector<llvm::Value*> at(source.map.size(), e.index(0));
  const Operation* load = source.vload ? &e.op(*source.vload) : nullptr;
  if (load != nullptr) {
    view = e.views[load->in[0]];
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = e.as_index(ir, load->in[i + 1]);
  } else {
    view.base = e.buffers[static_cast<std::size_t>(e.scheduled.buffer_of[source.value])];
    for (const std::int64_t stride : tile::Type::view(type.dtype, type.shape).strides) {
      view.strides.push_back(e.index(stride));
    }
  }
  Matrix matrix;
  llvm::Value* offset = e.index(0);
  llvm::Value* strides[2] = {nullptr, nullptr};
  llvm::Value* live[2] = {nullptr, nullptr};
  for (std::size_t i = 0; i < at.size(); ++i) {
    const AxisMap& map = source.map[i];
    llvm::Value* start = ir.CreateAdd(at[i], e.index(map.offset));
    offset = ir.CreateAdd(offset, ir.CreateMul(start, view.strides[i]));
    if (map.axis >= 0) strides[map.axis] = view.strides[i];
    if (load == nullptr || (i < load->ints.size() && load->ints[i] == 1)) continue;
    llvm::Value* rest = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax,
                                                 ir.CreateSub(view.shape[i], start), e.index(0));
    // Outside along an axis that the matrix does not have, nothing of it is inside.
    if (map.axis < 0)
      rest = ir.CreateSelect(ir.CreateICmpSGT(rest, e.index(0)), e.index(std::int64_t{1} << 40),
                             e.index(0));
    live[std::max(map.axis, 0)] = least(ir, live[std::max(map.axis, 0)], rest);
  }
  for (llvm::Value*& stride : strides) {
    if (stride == nullptr) stride = e.index(1);  // an axis of extent 1
  }
  matrix.operand.base = ir.CreateGEP(e.memory_type(type.dtype), view.base, offset);
  matrix.operand.row_stride = strides[0];
  matrix.operand.column_stride = strides[1];
  matrix.rows = live[0];
  matrix.columns = live[1];
  return matrix;
}

}  // namespace

void Emitter::emit_dot_step(const DotStep& step) {
  const Operation& o = op(step.op);
  const tile::Extents &a_shape = type(o.in[0]).shape, &c_shape = type(o.out[0]).shape;
  DotCall call;
  call.shape = {type(o.in[0]).dtype, type(o.in[1]).dtype, type(o.out[0]).dtype,
                c_shape[0],          c_shape[1],          a_shape[1]};
  const Matrix a = matrix_of(*this, step.a), b = matrix_of(*this, step.b);
  call.a = a.operand;
  call.b = b.operand;
  call.plan = plan_dot(call.shape, machine, b.operand.panel);
  dot_scratch_bytes = std::max(dot_scratch_bytes, call.plan.scratch_bytes);
  llvm::Value *m = a.rows, *n = b.columns, *k = least(ir, a.columns, b.rows);
  call.extents = {least(ir, m, index(call.shape.m)), least(ir, n, index(call.shape.n)),
                  least(ir, k, index(call.shape.k))};
  call.c = buffers[static_cast<std::size_t>(step.out)];
  call.c_row_stride = index(call.shape.n);
  call.accumulate = step.accumulate;
  call.scratch = dot_scratch;
  const bool may_be_clipped = m != nullptr || n != nullptr || k != nullptr;
  if (!step.accumulate && may_be_clipped) {
    // What is outside of a view counts as zero, and so does its product.
    llvm::Value* is_whole =
        ir.CreateAnd(ir.CreateAnd(ir.CreateICmpEQ(call.extents.m, index(call.shape.m)),
                                  ir.CreateICmpEQ(call.extents.n, index(call.shape.n))),
                     ir.CreateICmpSGT(call.extents.k, index(0)));
    branch(ir.CreateNot(is_whole), [&] {
      const std::int64_t bytes = type(o.out[0]).count() * byte_width(call.shape.c);
      ir.CreateMemSet(call.c, ir.getInt8(0), static_cast<std::uint64_t>(bytes),
                      llvm::MaybeAlign(16));
    });
  }
  emit_dot(ir, call, machine);
}

}  // namespace tessera::codegen
