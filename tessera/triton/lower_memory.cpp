#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tessera/triton/lowering.h"

namespace tessera::triton {
namespace {

using tile::ValueId;
using F = tile::Function;

struct AtomicOp {
  std::string_view name;
  F function;
  bool is_unsigned = false;
};
constexpr std::array kAtomics = {
    AtomicOp{"add", F::Add},       AtomicOp{"fadd", F::Add},       AtomicOp{"and", F::And},
    AtomicOp{"or", F::Or},         AtomicOp{"xor", F::Xor},        AtomicOp{"max", F::Max},
    AtomicOp{"min", F::Min},       AtomicOp{"umax", F::Max, true}, AtomicOp{"umin", F::Min, true},
    AtomicOp{"exch", F::Exchange},
};

}  // namespace

bool Lowering::lower_memory(const Operation& op) {
  if (op.name == "tt.load") return lower_load(op), true;
  if (op.name == "tt.store") return lower_store(op), true;
  if (op.name == "tt.atomic_rmw") return lower_atomic(op), true;
  if (op.name == "tt.atomic_cas") return lower_cas(op), true;
  if (op.name == "tt.atomic_poll") return lower_poll(op), true;
  if (op.name == "tt.atomic_load") {
    const Lowered pointer = operand(op, 0);
    const Type type = pointee(pointer.type);
    const ValueId bits = current(pointer);
    result(op, type, reinterpret(bits, carrier_of(type.element)));
    return true;
  }
  if (op.name == "tt.atomic_store") {
    const Lowered pointer = operand(op, 0), x = operand(op, 1);
    builder_.atomic(F::Exchange, pointer.id, to_memory(x));
    return true;
  }
  if (op.name == "tt.addptr") {
    const Lowered pointer = operand(op, 0);
    if (!pointer.type.is_pointer()) return malformed(op, "the first operand is no pointer"), true;
    std::unordered_map<ValueId, ValueId> known;
    result(op, pointer.type, builder_.offset(pointer.id, widened(operand(op, 1).id, known)));
    return true;
  }
  return false;
}

/// Addresses do not wrap: an offset is what its sums and products of 32-bit numbers are as
/// integers. (For Triton, one that leaves 32 bits is a mistake of the kernel, which debug=True
/// reports.)
ValueId Lowering::widened(ValueId x, std::unordered_map<ValueId, ValueId>& known) {
  if (const auto found = known.find(x); found != known.end()) return found->second;
  if (builder_.failed() || builder_.type(x).dtype == DType::I64) return x;
  const tile::Operation* made = builder_.definition(x);
  ValueId wide = 0;
  if (made == nullptr || builder_.type(x).dtype != DType::I32) {
    wide = as(x, DType::I64);
  } else {
    const tile::Operation op = *made;  // the builder's list grows
    const tile::Extents shape = builder_.type(x).shape;
    const bool is_ring = op.function == F::Add || op.function == F::Sub || op.function == F::Mul;
    if (op.code == tile::Code::Map && is_ring) {
      const ValueId left = widened(op.in[0], known), right = widened(op.in[1], known);
      wide = map(op.function, {left, right});
    } else if (op.code == tile::Code::Iota) {
      wide = builder_.iota(DType::I64, shape[0]);
    } else if (op.code == tile::Code::Broadcast) {
      wide = builder_.broadcast(widened(op.in[0], known), shape);
    } else if (op.code == tile::Code::Reshape) {
      wide = builder_.reshape(widened(op.in[0], known), shape);
    } else if (op.code == tile::Code::Permute) {
      wide = builder_.permute(widened(op.in[0], known), op.ints);
    } else {
      wide = as(x, DType::I64);
    }
  }
  known[x] = wide;
  return wide;
}

/// A bool is a byte in memory.
ValueId Lowering::to_memory(const Lowered& x) {
  if (x.type.is_pointer()) return builder_.address(x.id);
  return x.type.element == Element::I1 ? as(x.id, DType::I8) : x.id;
}

ValueId Lowering::from_memory(ValueId x, const Type& type) {
  if (type.is_pointer()) return builder_.pointer_cast(x, tile_type(type).dtype);
  return type.element == Element::I1 ? as(x, DType::Bool) : x;
}

void Lowering::lower_load(const Operation& op) {
  const Lowered pointer = operand(op, 0);
  if (!pointer.type.is_pointer()) return malformed(op, "the operand is no pointer");
  const Type type = pointee(pointer.type);
  std::optional<ValueId> mask, other;
  if (op.operands.size() > 1) mask = operand(op, 1).id;
  if (op.operands.size() > 2) other = to_memory(operand(op, 2));
  result(op, type, from_memory(builder_.load(pointer.id, mask, other), type));
}

void Lowering::lower_store(const Operation& op) {
  const Lowered pointer = operand(op, 0), x = operand(op, 1);
  std::optional<ValueId> mask;
  if (op.operands.size() > 2) mask = operand(op, 2).id;
  builder_.store(pointer.id, to_memory(x), mask);
}

void Lowering::lower_atomic(const Operation& op) {
  const std::string name = op.words.empty() ? "" : op.words[0].text;
  const auto row = std::find_if(kAtomics.begin(), kAtomics.end(),
                                [&](const AtomicOp& r) { return r.name == name; });
  if (row == kAtomics.end()) return unsupported(op, fmt::format("function {}", name));
  const Lowered pointer = operand(op, 0), x = operand(op, 1);
  std::optional<ValueId> mask;
  if (op.operands.size() > 2) mask = operand(op, 2).id;
  const DType dtype = builder_.type(x.id).dtype;
  if (!row->is_unsigned) {
    return result(op, x.type, builder_.atomic(row->function, pointer.id, x.id, mask));
  }
  const ValueId target = builder_.pointer_cast(pointer.id, unsigned_of(dtype));
  const ValueId old =
      builder_.atomic(row->function, target, reinterpret(x.id, unsigned_of(dtype)), mask);
  result(op, x.type, reinterpret(old, dtype));
}

/// What is in memory now, as integers: a read that is not moved.
ValueId Lowering::current(const Lowered& pointer) {
  const DType bits = signed_bits(bit_width(pointee(pointer.type).element));
  const ValueId place = builder_.type(pointer.id).dtype == bits
                            ? pointer.id
                            : builder_.pointer_cast(pointer.id, bits);
  const tile::Type type = tile::Type::tile(bits, builder_.type(pointer.id).shape);
  return builder_.atomic(F::Or, place, builder_.constant(type, tile::Literal{}));
}

/// Waits until a number is in memory, or as many nanoseconds as a round takes at least have passed.
void Lowering::lower_poll(const Operation& op) {
  const Lowered pointer = operand(op, 0), expected = operand(op, 1);
  if (builder_.failed()) return;
  if (!is_integer(expected.type.element) || expected.type.is_tensor)
    return unsupported(op, fmt::format("numbers of {}", to_string(expected.type)));
  const bool ends = op.operands.size() > 2;
  const ValueId rounds = ends ? as(operand(op, 2).id, DType::I64) : builder_.index(1);
  const auto done = builder_.while_loop(
      {current(pointer), rounds},
      [&](const std::vector<ValueId>& x) {
        const ValueId waits = map(F::NotEqual, {x[0], expected.id});
        const ValueId left = map(F::Greater, {x[1], builder_.index(0)});
        return std::vector<ValueId>{map(F::And, {waits, left})};
      },
      [&](const std::vector<ValueId>& x) {
        return std::vector<ValueId>{current(pointer),
                                    ends ? map(F::Sub, {x[1], builder_.index(1)}) : x[1]};
      });
  result(op, {.element = Element::I1}, map(F::Equal, {done[0], expected.id}));
}

void Lowering::lower_cas(const Operation& op) {
  const Lowered pointer = operand(op, 0), expected = operand(op, 1), x = operand(op, 2);
  if (is_integer(x.type.element))
    return result(op, x.type, builder_.cas(pointer.id, expected.id, x.id));
  const DType bits = signed_bits(bit_width(x.type.element));
  const ValueId old = builder_.cas(builder_.pointer_cast(pointer.id, bits),
                                   reinterpret(expected.id, bits), reinterpret(x.id, bits));
  result(op, x.type, reinterpret(old, carrier_of(x.type.element)));
}

}  // namespace tessera::triton
