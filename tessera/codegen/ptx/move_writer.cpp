#include "tessera/codegen/ptx/move_writer.h"

#include <algorithm>

namespace tessera::codegen::ptx {

using tile::Code;
using tile::gpu::Convert;
using tile::gpu::Move;

void MoveWriter::write(const Convert& convert) {
  define(
      convert.value, convert.to,
      block_.convert(tile(convert.value, convert.from), convert.from, convert.to, convert.through));
}

void MoveWriter::write(const Move& move) {
  const Operation& op = operation(move.op);
  switch (op.code) {
    case Code::Gather: return gather(op, move);
    case Code::Concat: return concat(op, move);
    case Code::Slice: return slice(op, move);
    default: return reshape(op, move);
  }
}

void MoveWriter::gather(const Operation& op, const Move& move) {
  const ValueId x = op.in[0];
  const Layout& layout = move.to;
  const auto axis = static_cast<std::size_t>(op.ints[0]);
  const Pieces source = tile(x, move.from[0]), index = tile(op.in[1], layout);
  block_.put(move.through, move.from[0], source);
  block_.barrier();
  Pieces registers;
  const std::int64_t extent = type(x).shape[axis];
  for (int reg = 0; reg < layout.registers(); ++reg) {
    std::vector<llvm::Value*> indices;
    for (int a = 0; a < layout.rank(); ++a) indices.push_back(block_.index(layout, a, reg));
    // An index out of range, or of a padding element, must not leave the buffer.
    llvm::Value* at = index[static_cast<std::size_t>(reg)];
    if (at->getType()->getIntegerBitWidth() < 32) at = ir_.CreateZExt(at, ir_.getInt32Ty());
    llvm::Value* last =
        llvm::ConstantInt::get(at->getType(), static_cast<std::uint64_t>(extent - 1));
    at = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, at, last);
    indices[axis] = ir_.CreateTrunc(at, ir_.getInt32Ty());
    registers.push_back(block_.take_one(move.through, indices));
  }
  define(op.out[0], layout, std::move(registers));
}

void MoveWriter::concat(const Operation& op, const Move& move) {
  const auto axis = static_cast<std::size_t>(op.ints[0]);
  std::vector<std::int64_t> at(move.through.extents.size(), 0);
  for (std::size_t i = 0; i < op.in.size(); ++i) {
    const tile::Extents& shape = type(op.in[i]).shape;
    block_.put(move.through, move.from[i], tile(op.in[i], move.from[i]), at, &shape);
    at[axis] += shape[axis];
  }
  block_.barrier();
  define(op.out[0], move.to, block_.take(move.through, move.to));
}

void MoveWriter::slice(const Operation& op, const Move& move) {
  block_.put(move.through, move.from[0], tile(op.in[0], move.from[0]));
  block_.barrier();
  define(op.out[0], move.to, block_.take(move.through, move.to, op.ints));
}

// By linear position.
void MoveWriter::reshape(const Operation& op, const Move& move) {
  const ValueId in = op.in[0], out = op.out[0];
  const tile::Extents &from = type(in).shape, &to = type(out).shape;
  const Layout &source = move.from[0], &layout = move.to;
  const Pieces registers = tile(in, source);
  const auto position = [&](const Layout& of, const tile::Extents& shape, int reg) {
    llvm::Value* position = block_.i32(0);
    for (int axis = 0; axis < of.rank(); ++axis)
      position =
          ir_.CreateAdd(ir_.CreateMul(position, block_.i32(shape[static_cast<std::size_t>(axis)])),
                        block_.index(of, axis, reg));
    return position;
  };
  const Block::Buffer buffer = move.through;
  const auto align = llvm::Align(static_cast<std::uint64_t>(byte_width(dtype(in))));
  for (int reg = 0; reg < source.registers(); ++reg) {
    block_.when(block_.is_inside(source, from, reg), [&] {
      llvm::Value* at = position(source, from, reg);
      ir_.CreateAlignedStore(block_.pack({&registers[static_cast<std::size_t>(reg)], 1}, dtype(in)),
                             block_.address(buffer, {&at, 1}), align);
    });
  }
  block_.barrier();
  Pieces moved;
  for (int reg = 0; reg < layout.registers(); ++reg) {
    llvm::Value* at = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, position(layout, to, reg),
                                                block_.i32(type(in).count() - 1));
    moved.push_back(block_.take_one(buffer, {&at, 1}));
  }
  define(out, layout, std::move(moved));
}

}  // namespace tessera::codegen::ptx
