#include <algorithm>

#include "tessera/codegen/ptx/emitter.h"

// Data movement between threads (gather, concat, slice, reshape), through shared memory.

namespace tessera::codegen::ptx {

void Emitter::gather(const Operation& op) {
  const ValueId x = op.in[0];
  const Layout from = home(x), layout = home(op.out[0]);
  const int axis = static_cast<int>(op.ints[0]);
  const Pieces source = tile(x, from), index = tile(op.in[1], layout);
  tile::Extents extents;
  for (int a = 0; a < from.rank(); ++a)
    extents.push_back(std::max(from.extent(a), a == axis ? 1 : layout.extent(a)));
  Block::Buffer buffer = Block::buffer(extents, dtype(x));
  buffer.offset = block_.scratch(buffer.bytes());
  block_.put(buffer, from, source);
  block_.barrier();
  Pieces registers;
  const std::int64_t extent = type(x).shape[static_cast<std::size_t>(axis)];
  for (int reg = 0; reg < layout.registers(); ++reg) {
    std::vector<llvm::Value*> indices;
    for (int a = 0; a < layout.rank(); ++a) indices.push_back(block_.index(layout, a, reg));
    // An index out of range, or of a padding element, must not leave the buffer.
    llvm::Value* at = index[static_cast<std::size_t>(reg)];
    if (at->getType()->getIntegerBitWidth() < 32) at = ir_.CreateZExt(at, ir_.getInt32Ty());
    llvm::Value* last =
        llvm::ConstantInt::get(at->getType(), static_cast<std::uint64_t>(extent - 1));
    at = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, at, last);
    indices[static_cast<std::size_t>(axis)] = ir_.CreateTrunc(at, ir_.getInt32Ty());
    registers.push_back(block_.take_one(buffer, indices));
  }
  block_.forget();
  define(op.out[0], layout, std::move(registers));
}

void Emitter::concat(const Operation& op) {
  const ValueId out = op.out[0];
  const Layout layout = home(out);
  const auto axis = static_cast<std::size_t>(op.ints[0]);
  std::vector<Pieces> parts;
  for (const ValueId in : op.in) parts.push_back(tile(in, home(in)));
  tile::Extents extents;
  for (int a = 0; a < layout.rank(); ++a) {
    extents.push_back(layout.extent(a));
    for (const ValueId in : op.in) extents.back() = std::max(extents.back(), home(in).extent(a));
  }
  Block::Buffer buffer = Block::buffer(extents, dtype(out));
  buffer.offset = block_.scratch(buffer.bytes());
  std::vector<std::int64_t> at(extents.size(), 0);
  for (std::size_t i = 0; i < op.in.size(); ++i) {
    block_.put(buffer, home(op.in[i]), parts[i], at, &type(op.in[i]).shape);
    at[axis] += type(op.in[i]).shape[axis];
  }
  block_.barrier();
  Pieces registers = block_.take(buffer, layout);
  block_.forget();
  define(out, layout, std::move(registers));
}

void Emitter::slice(const Operation& op) {
  const Layout from = home(op.in[0]), layout = home(op.out[0]);
  const Pieces source = tile(op.in[0], from);
  tile::Extents extents;
  for (int a = 0; a < from.rank(); ++a)
    extents.push_back(
        std::max(from.extent(a), op.ints[static_cast<std::size_t>(a)] + layout.extent(a)));
  Block::Buffer buffer = Block::buffer(extents, dtype(op.in[0]));
  buffer.offset = block_.scratch(buffer.bytes());
  block_.put(buffer, from, source);
  block_.barrier();
  Pieces registers = block_.take(buffer, layout, op.ints);
  block_.forget();
  define(op.out[0], layout, std::move(registers));
}

// Reshapes that are no relabelling of bits go through shared memory, by linear position.
void Emitter::reshape(const Operation& op) {
  const ValueId in = op.in[0], out = op.out[0];
  const tile::Extents &from = type(in).shape, &to = type(out).shape;
  if (type(in).is_scalar()) {
    const std::size_t count =
        type(out).is_scalar() ? 1 : static_cast<std::size_t>(home(out).registers());
    return define(out, type(out).is_scalar() ? Layout(0, {}, {}) : home(out),
                  Pieces(count, scalar(in)));
  }
  const Layout source = home(in);
  if (!type(out).is_scalar() && reshaped(source, from, to) == home(out))
    return define(out, home(out), tile(in, source));
  const Pieces registers = tile(in, source);
  const Layout layout = type(out).is_scalar() ? Layout(0, {}, {}) : home(out);
  const auto position = [&](const Layout& of, const tile::Extents& shape, int reg) {
    llvm::Value* position = block_.i32(0);
    for (int axis = 0; axis < of.rank(); ++axis)
      position =
          ir_.CreateAdd(ir_.CreateMul(position, block_.i32(shape[static_cast<std::size_t>(axis)])),
                        block_.index(of, axis, reg));
    return position;
  };
  const std::int64_t count = type(in).count();
  Block::Buffer buffer = Block::buffer({count}, dtype(in));
  buffer.offset = block_.scratch(buffer.bytes());
  const auto align = llvm::Align(static_cast<std::uint64_t>(byte_width(dtype(in))));
  for (int reg = 0; reg < source.registers(); ++reg) {
    const auto write = [&] {
      llvm::Value* at = position(source, from, reg);
      ir_.CreateAlignedStore(block_.pack({&registers[static_cast<std::size_t>(reg)], 1}, dtype(in)),
                             block_.address(buffer, {&at, 1}), align);
    };
    if (llvm::Value* inside = block_.is_inside(source, from, reg)) {
      block_.when(inside, write);
    } else {
      write();
    }
  }
  block_.barrier();
  Pieces moved;
  for (int reg = 0; reg < layout.registers(); ++reg) {
    llvm::Value* at = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, position(layout, to, reg),
                                                block_.i32(count - 1));
    moved.push_back(block_.take_one(buffer, {&at, 1}));
  }
  block_.forget();
  define(out, layout, std::move(moved));
}

}  // namespace tessera::codegen::ptx
