#include <algorithm>
#include <limits>

#include "tessera/codegen/ptx/emitter.h"
#include "tessera/codegen/ptx/functions.h"

namespace tessera::codegen::ptx {
namespace {

/// The registers of a layout whose bits along an axis are 0, and the others that belong to each, in
/// the order of their index.
std::vector<std::vector<int>> groups(const Layout& layout, int axis) {
  std::vector<std::vector<int>> groups;
  for (int reg = 0; reg < layout.registers(); ++reg)
    if (layout.offset(axis, reg) == 0) groups.emplace_back();
  std::vector<int> members(groups.size(), 0);
  for (int reg = 0; reg < layout.registers(); ++reg) {
    std::size_t group = 0, bit = 0;
    for (std::size_t i = 0; i < layout.register_bits().size(); ++i)
      if (layout.register_bits()[i].axis != axis)
        group |= static_cast<std::size_t>((reg >> i) & 1) << bit++;
    groups[group].push_back(reg);
  }
  for (std::vector<int>& group : groups) {
    std::sort(group.begin(), group.end(),
              [&](int a, int b) { return layout.offset(axis, a) < layout.offset(axis, b); });
  }
  return groups;
}

/// Sums of 16-bit floats are carried in f32.
bool widens(const tile::Operation& op, DType dtype) {
  return op.function == tile::Function::Add && (dtype == DType::F16 || dtype == DType::BF16);
}

}  // namespace

Emitter::Elements Emitter::combine(const Operation& op, const Elements& left,
                                   const Elements& right) {
  if (op.regions.empty()) {
    const DType of = widens(op, dtype(op.in[0])) ? DType::F32 : dtype(op.in[0]);
    const Pieces operands[] = {{left[0]}, {right[0]}};
    return emit_map(ir_, op.function, of, operands, options_.precision);
  }
  const tile::Region& body = op.regions[0];
  for (std::size_t i = 0; i < left.size(); ++i) {
    scalars_[body.params[i]] = left[i];
    scalars_[body.params[left.size() + i]] = right[i];
  }
  region(body);
  Elements combined;
  for (const ValueId id : kernel_.ops[body.ops.back()].in)
    combined.push_back(error_ ? left[combined.size()] : scalar(id));
  return combined;
}

// Parts are joined first in a thread, then between the threads of a warp, then between warps. For a
// combination of one's own that is the order of the index: it need not commute. An element outside
// of the tile is passed over: the last of each list says which count.
void Emitter::reduce(const Operation& op) {
  const int axis = static_cast<int>(op.ints[0]);
  const tile::Extents& shape = type(op.in[0]).shape;
  const Layout layout = [&] {
    if (!op.regions.empty()) return Layout::in_order(shape, axis, block_.threads());
    const std::optional<Layout>& given = plan_.home(op.in[0]);
    return given ? *given : plan_.standard(shape);
  }();
  const bool padded = layout.extent(axis) > shape[static_cast<std::size_t>(axis)];
  const bool wide = widens(op, dtype(op.in[0]));

  std::vector<DType> types;
  std::vector<Pieces> inputs;
  for (const ValueId id : op.in) {
    inputs.push_back(tile(id, layout));
    types.push_back(wide ? DType::F32 : dtype(id));
    if (wide) inputs.back() = emit_conversion(ir_, inputs.back(), dtype(id), DType::F32);
  }
  if (padded) {
    Pieces counts;
    for (int reg = 0; reg < layout.registers(); ++reg)
      counts.push_back(ir_.CreateICmpULT(block_.index(layout, axis, reg),
                                         block_.i32(shape[static_cast<std::size_t>(axis)])));
    inputs.push_back(std::move(counts));
    types.push_back(DType::Bool);
  }
  const auto join = [&](const Elements& left, const Elements& right) {
    if (!padded) return combine(op, left, right);
    Elements both = combine(op, {left.begin(), left.end() - 1}, {right.begin(), right.end() - 1});
    // Those that count are the first along the axis: without the right one, the left stands.
    for (std::size_t i = 0; i < both.size(); ++i)
      both[i] = ir_.CreateSelect(right.back(), both[i], left[i]);
    both.push_back(left.back());
    return both;
  };

  std::vector<Elements> parts;
  for (const std::vector<int>& group : groups(layout, axis)) {
    std::vector<Elements> level;
    for (const int reg : group) {
      level.emplace_back();
      for (const Pieces& input : inputs)
        level.back().push_back(input[static_cast<std::size_t>(reg)]);
    }
    while (level.size() > 1) {  // a tree: short chains, small errors
      std::vector<Elements> upper;
      for (std::size_t i = 0; i < level.size(); i += 2)
        upper.push_back(join(level[i], level[i + 1]));
      level = std::move(upper);
    }
    parts.push_back(std::move(level.front()));
  }

  const std::vector<IndexBit>& bits = layout.thread_bits();
  std::vector<int> warp_bits;
  for (int bit = 0; bit < static_cast<int>(bits.size()); ++bit) {
    if (bits[static_cast<std::size_t>(bit)].axis != axis) continue;
    if (bit >= kLaneBits) {
      warp_bits.push_back(bit);
      continue;
    }
    llvm::Value* upper = nullptr;
    if (!op.regions.empty() || padded) upper = ir_.CreateIsNotNull(block_.thread_bits(bit, 1));
    for (Elements& part : parts) {
      Elements other;
      for (llvm::Value* value : part) other.push_back(block_.across(value, bit));
      if (upper == nullptr) {
        part = join(part, other);
        continue;
      }
      Elements left, right;
      for (std::size_t i = 0; i < part.size(); ++i) {
        left.push_back(ir_.CreateSelect(upper, other[i], part[i]));
        right.push_back(ir_.CreateSelect(upper, part[i], other[i]));
      }
      part = join(left, right);
    }
  }

  const Layout rest = layout.without(axis);
  if (!warp_bits.empty()) {
    // Each warp writes its part; all read the parts in order.
    const std::int64_t warps = std::int64_t{1} << warp_bits.size();
    llvm::Value* own = block_.i32(0);
    for (std::size_t i = 0; i < warp_bits.size(); ++i)
      own = ir_.CreateOr(own, ir_.CreateShl(block_.thread_bits(warp_bits[i], 1),
                                            block_.i32(static_cast<std::int64_t>(i))));
    tile::Extents extents;
    for (int a = 0; a < rest.rank(); ++a) extents.push_back(rest.extent(a));
    extents.push_back(warps);  // last, so that a thread reads neighbours
    std::vector<Block::Buffer> buffers;
    std::int64_t bytes = 0;
    for (const DType of : types) {
      buffers.push_back(Block::buffer(extents, of));
      buffers.back().offset = bytes;
      bytes += (buffers.back().bytes() + 15) / 16 * 16;
    }
    const std::int64_t base = block_.scratch(bytes);
    const auto indices = [&](int reg, llvm::Value* warp) {
      std::vector<llvm::Value*> indices;
      for (int a = 0; a < rest.rank(); ++a) indices.push_back(block_.index(rest, a, reg));
      indices.push_back(warp);
      return indices;
    };
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      buffers[i].offset += base;
      for (int reg = 0; reg < rest.registers(); ++reg) {
        llvm::Value* value = parts[static_cast<std::size_t>(reg)][i];
        const auto align = llvm::Align(static_cast<std::uint64_t>(byte_width(types[i])));
        ir_.CreateAlignedStore(block_.pack({&value, 1}, types[i]),
                               block_.address(buffers[i], indices(reg, own)), align);
      }
    }
    block_.barrier();
    for (int reg = 0; reg < rest.registers(); ++reg) {
      Elements sum;
      for (std::int64_t warp = 0; warp < warps; ++warp) {
        Elements part;
        for (const Block::Buffer& buffer : buffers)
          part.push_back(block_.take_one(buffer, indices(reg, block_.i32(warp))));
        sum = warp == 0 ? part : join(sum, part);
      }
      parts[static_cast<std::size_t>(reg)] = std::move(sum);
    }
    block_.forget();
  }

  for (std::size_t i = 0; i < op.out.size(); ++i) {
    Pieces registers;
    for (const Elements& part : parts) registers.push_back(part[i]);
    if (wide) registers = emit_conversion(ir_, registers, DType::F32, dtype(op.out[i]));
    if (!type(op.out[i]).is_scalar() && rest != home(op.out[i]))
      registers = block_.convert(registers, dtype(op.out[i]), rest, home(op.out[i]));
    define(op.out[i], type(op.out[i]).is_scalar() ? rest : home(op.out[i]), std::move(registers));
  }
}

// In log2(n) steps, each joins with what lies 1, 2, 4, … before.
void Emitter::scan(const Operation& op) {
  const int axis = static_cast<int>(op.ints[0]);
  const bool reverse = op.ints[1] != 0;
  const tile::Extents& shape = type(op.in[0]).shape;
  const Layout layout = home(op.out[0]);
  const std::int64_t extent = shape[static_cast<std::size_t>(axis)];
  const bool wide = widens(op, dtype(op.in[0]));
  tile::Extents extents;
  for (int a = 0; a < layout.rank(); ++a) extents.push_back(layout.extent(a));

  std::vector<Pieces> current;
  std::vector<Block::Buffer> buffers;
  std::int64_t bytes = 0;
  for (const ValueId id : op.in) {
    current.push_back(tile(id, layout));
    if (wide) current.back() = emit_conversion(ir_, current.back(), dtype(id), DType::F32);
    buffers.push_back(Block::buffer(extents, wide ? DType::F32 : dtype(id)));
    buffers.back().offset = bytes;
    bytes += (buffers.back().bytes() + 15) / 16 * 16;
  }
  for (std::int64_t distance = 1; distance < extent; distance *= 2) {
    const std::int64_t base = block_.scratch(bytes);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      Block::Buffer buffer = buffers[i];
      buffer.offset += base;
      block_.put(buffer, layout, current[i]);
    }
    block_.barrier();
    for (int reg = 0; reg < layout.registers(); ++reg) {
      const auto r = static_cast<std::size_t>(reg);
      llvm::Value* own = block_.index(layout, axis, reg);
      llvm::Value* other = reverse ? ir_.CreateAdd(own, block_.i32(distance))
                                   : ir_.CreateSub(own, block_.i32(distance));
      llvm::Value* exists = ir_.CreateICmpULT(other, block_.i32(extent));
      std::vector<llvm::Value*> indices;
      for (int a = 0; a < layout.rank(); ++a)
        indices.push_back(a == axis ? ir_.CreateSelect(exists, other, own)
                                    : block_.index(layout, a, reg));
      Elements before, here;
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        Block::Buffer buffer = buffers[i];
        buffer.offset += base;
        before.push_back(block_.take_one(buffer, indices));
        here.push_back(current[i][r]);
      }
      const Elements joined = combine(op, before, here);
      for (std::size_t i = 0; i < buffers.size(); ++i)
        current[i][r] = ir_.CreateSelect(exists, joined[i], here[i]);
    }
    block_.forget();
  }
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    if (wide) current[i] = emit_conversion(ir_, current[i], DType::F32, dtype(op.out[i]));
    define(op.out[i], layout, std::move(current[i]));
  }
}

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
    // An index out of range, or of an element outside of the tile, must not leave the buffer.
    llvm::Value* at = index[static_cast<std::size_t>(reg)];
    llvm::Value* last =
        llvm::ConstantInt::get(at->getType(), static_cast<std::uint64_t>(extent - 1));
    at = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, at, last);
    indices[static_cast<std::size_t>(axis)] = ir_.CreateZExtOrTrunc(at, ir_.getInt32Ty());
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

// Where bits cannot be relabelled, elements go through shared memory by their position.
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
