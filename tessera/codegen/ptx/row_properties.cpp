#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "tessera/codegen/ptx/row_writer.h"

// Addresses, alignment and overlap of rows that are processed in parts, computed before the first
// part.

namespace tessera::codegen::ptx {

using tile::Code;

llvm::Value* RowWriter::row_address(const Operation& op) {
  const View& view = this->view(op.in[0]);
  llvm::Value* elements = block_.i64(0);
  for (std::size_t axis = 0; axis < view.strides.size(); ++axis) {
    llvm::Value* at = ir_.CreateSExt(scalar(op.in[1 + axis]), ir_.getInt64Ty());
    elements = ir_.CreateAdd(elements, ir_.CreateMul(at, view.strides[axis]));
  }
  return ir_.CreateAdd(view.base,
                       ir_.CreateMul(elements, block_.i64(byte_width(type(op.in[0]).dtype))));
}

void RowWriter::write(const tile::gpu::RowProperties& properties) {
  properties_ = {.aligned = ir_.getTrue(), .shifted = ir_.getTrue(), .whole = ir_.getTrue()};
  rows_ = {};
  define(mapping_.cut->column, block_.i64(0));
  bodies_.write(properties.body);
  find_shift();
  find_overlaps();
  // Memory that all programs read is written by none, if there are several.
  properties_.is_simple = ir_.CreateAnd(properties_.whole, ir_.CreateNot(properties_.overlaps));
  if (properties.reads_constants)
    properties_.is_simple = ir_.CreateAnd(
        properties_.is_simple, ir_.CreateICmpUGT(evaluator_.pid(Code::Npid, 0), block_.i64(1)));
}

void RowWriter::write(const tile::gpu::CheckRow& check) {
  const tile::CutRows& cut = *mapping_.cut;
  const Operation& op = operation(check.op);
  const View& view = this->view(op.in[0]);
  const tile::Extents& shape = type(op.code == Code::Vload ? op.out[0] : op.in.back()).shape;
  const auto along = static_cast<std::size_t>(*tile::gpu::cut_axis(cut, op));
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    llvm::Value* at = ir_.CreateSExt(scalar(op.in[1 + axis]), ir_.getInt64Ty());
    llvm::Value* inside = ir_.CreateICmpULT(at, view.extents[axis]);
    if (axis == along)
      inside = ir_.CreateAnd(
          inside, ir_.CreateICmpUGE(ir_.CreateSub(view.extents[axis], at), block_.i64(cut.extent)));
    properties_.whole = ir_.CreateAnd(properties_.whole, inside);
  }
  const int width = byte_width(type(op.in[0]).dtype);
  const int bytes = width * check.run;
  llvm::Value* first = row_address(op);
  const Values::Row row{first, ir_.CreateAdd(first, block_.i64(cut.extent * width)), width};
  values_.rows.insert_or_assign(check.op, row);
  properties_.aligned = ir_.CreateAnd(properties_.aligned, is_multiple_of(first, bytes));
  if (!check.is_fixed) rows_.own.emplace_back(row, bytes);
  if (op.code == Code::Vstore) {
    rows_.store = row;
  } else {
    rows_.loads.push_back(row);
  }
}

void RowWriter::find_shift() {
  // Rows with equal misalignment start a few elements after an address that is aligned for all of
  // them.
  const auto narrowest =
      std::min_element(rows_.own.begin(), rows_.own.end(),
                       [](const auto& a, const auto& b) { return a.first.width < b.first.width; });
  properties_.before = block_.i64(0);
  if (narrowest != rows_.own.end()) {
    const auto& [row, bytes] = *narrowest;
    properties_.before =
        ir_.CreateUDiv(ir_.CreateAnd(row.first, block_.i64(bytes - 1)), block_.i64(row.width));
  }
  for (const auto& [row, bytes] : rows_.own) {
    llvm::Value* from =
        ir_.CreateSub(row.first, ir_.CreateMul(properties_.before, block_.i64(row.width)));
    properties_.shifted = ir_.CreateAnd(properties_.shifted, is_multiple_of(from, bytes));
  }
}

void RowWriter::find_overlaps() {
  // A part is stored after it has been loaded, but other parts may not have been. Where the result
  // overlaps with the input, the order of parts is that of memmove.
  llvm::Value *up = ir_.getTrue(), *down = ir_.getTrue();
  properties_.overlaps = ir_.getFalse();
  for (const Values::Row& load : rows_.loads) {
    if (!rows_.store) break;
    llvm::Value* apart = ir_.CreateOr(ir_.CreateICmpULE(rows_.store->end, load.first),
                                      ir_.CreateICmpULE(load.end, rows_.store->first));
    if (rows_.store->width == load.width)
      apart = ir_.CreateOr(apart, ir_.CreateICmpEQ(rows_.store->first, load.first));
    const auto fits = [&](bool widths, llvm::Value* order) {
      return ir_.CreateOr(apart, widths ? order : ir_.getFalse());
    };
    up = ir_.CreateAnd(up, fits(rows_.store->width <= load.width,
                                ir_.CreateICmpULE(rows_.store->first, load.first)));
    down = ir_.CreateAnd(down, fits(rows_.store->width >= load.width,
                                    ir_.CreateICmpUGE(rows_.store->first, load.first)));
    properties_.overlaps = ir_.CreateOr(properties_.overlaps, ir_.CreateNot(apart));
  }
  properties_.backwards = ir_.CreateNot(up);
  block_.when(ir_.CreateNot(ir_.CreateOr(up, down)),
              [&] { ir_.CreateIntrinsic(llvm::Intrinsic::trap, {}, {}); });
}

llvm::Value* RowWriter::is_multiple_of(llvm::Value* number, int power) {
  return ir_.CreateICmpEQ(ir_.CreateAnd(number, block_.i64(power - 1)), block_.i64(0));
}

}  // namespace tessera::codegen::ptx
