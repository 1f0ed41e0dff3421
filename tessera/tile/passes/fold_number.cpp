#include <algorithm>
#include <array>
#include <utility>

#include "tessera/tile/interp_tile.h"
#include "tessera/tile/passes/fold.h"

namespace tessera::tile {
namespace {

using Cell = interp::Datum;

Cell cell_of(DType dtype, const Literal& literal) {
  Cell cell(byte_width(dtype));
  interp::fill(dtype, literal, 1, cell.bytes());
  return cell;
}

Literal literal_in(DType dtype, const Cell& cell) {
  return interp::with_type(dtype, [&]<class T>(T) -> Literal {
    const auto x = interp::loaded(*cell.as<T>());
    if constexpr (interp::is_real<T>)
      return {static_cast<double>(x), 0};
    else
      return {0, static_cast<std::int64_t>(x)};
  });
}

/// Constant folding by the interpreter.
Literal evaluate(const Operation& op, DType from, DType to, const std::vector<Literal>& in) {
  std::vector<Cell> cells;
  std::vector<const std::byte*> bytes;
  for (const Literal& literal : in) cells.push_back(cell_of(from, literal));
  for (const Cell& cell : cells) bytes.push_back(cell.bytes());
  Cell result(byte_width(to));
  if (op.code == Code::Map)
    interp::map(op.function, from, bytes, 1, result.bytes());
  else if (op.code == Code::Cast)
    interp::cast(from, to, bytes[0], 1, result.bytes());
  else
    result = cells[0];
  return literal_in(to, result);
}

/// Identity of a function with a constant right operand.
struct Identity {
  Function function;
  std::int64_t constant;  // -1: all bits set
  enum Result { Left, Right } result;
  bool floats;
};
constexpr std::array kIdentities = std::to_array<Identity>({
    {Function::Add, 0, Identity::Left, false},
    {Function::Sub, 0, Identity::Left, false},
    {Function::Mul, 1, Identity::Left, true},
    {Function::Mul, 0, Identity::Right, false},
    {Function::Div, 1, Identity::Left, true},
    {Function::And, -1, Identity::Left, false},
    {Function::And, 0, Identity::Right, false},
    {Function::Or, 0, Identity::Left, false},
    {Function::Or, -1, Identity::Right, false},
    {Function::Xor, 0, Identity::Left, false},
    {Function::Shl, 0, Identity::Left, false},
    {Function::Shr, 0, Identity::Left, false},
});

/// Identity of a function with two equal integer operands.
struct Doubled {
  Function function;
  enum Result { Operand, Zero, One } result;
};
constexpr std::array kDoubled = std::to_array<Doubled>({
    {Function::Sub, Doubled::Zero},
    {Function::Xor, Doubled::Zero},
    {Function::And, Doubled::Operand},
    {Function::Or, Doubled::Operand},
    {Function::Min, Doubled::Operand},
    {Function::Max, Doubled::Operand},
    {Function::Minimum, Doubled::Operand},
    {Function::Maximum, Doubled::Operand},
    {Function::Equal, Doubled::One},
    {Function::LessEqual, Doubled::One},
    {Function::GreaterEqual, Doubled::One},
    {Function::NotEqual, Doubled::Zero},
    {Function::Less, Doubled::Zero},
    {Function::Greater, Doubled::Zero},
});

/// Function with its operands swapped, of integers.
struct Mirror {
  Function function, mirrored;
  bool associative;
};
constexpr std::array kMirrors = std::to_array<Mirror>({
    {Function::Add, Function::Add, true},
    {Function::Mul, Function::Mul, true},
    {Function::And, Function::And, true},
    {Function::Or, Function::Or, true},
    {Function::Xor, Function::Xor, true},
    {Function::Min, Function::Min, true},
    {Function::Max, Function::Max, true},
    {Function::Equal, Function::Equal, false},
    {Function::NotEqual, Function::NotEqual, false},
    {Function::Less, Function::Greater, false},
    {Function::LessEqual, Function::GreaterEqual, false},
    {Function::Greater, Function::Less, false},
    {Function::GreaterEqual, Function::LessEqual, false},
});

template <class Row, std::size_t n>
const Row* row_of(const std::array<Row, n>& table, Function function) {
  const auto it = std::find_if(table.begin(), table.end(),
                               [&](const Row& row) { return row.function == function; });
  return it == table.end() ? nullptr : &*it;
}

/// Whether a cast is lossless.
bool widens(DType from, DType to) {
  if (is_float(from) || is_float(to)) {
    return (is_half(from) && (to == DType::F32 || to == DType::F64)) ||
           (from == DType::F32 && to == DType::F64);
  }
  if (from == DType::Bool || to == DType::Bool) return false;
  if (byte_width(to) <= byte_width(from)) return false;
  return is_signed(from) == is_signed(to) || is_signed(to);
}

bool equals(DType dtype, const Literal& literal, std::int64_t constant) {
  if (is_float(dtype)) return literal.number == static_cast<double>(constant);
  if (constant == -1) {
    const int bits = dtype == DType::Bool ? 1 : 8 * byte_width(dtype);
    const std::uint64_t ones = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    return (static_cast<std::uint64_t>(literal.integer) & ones) == ones;
  }
  return literal.integer == constant;
}

std::optional<ValueId> fold_constants(Rewrite& out, const Operation& op, const Type& type) {
  std::vector<Literal> literals;
  for (const ValueId in : op.in) {
    const auto literal = out.literal(in);
    if (!literal) return {};
    literals.push_back(*literal);
  }
  if (op.function == Function::Select)
    return out.constant(type, literals[literals[0].integer != 0 ? 1 : 2]);
  return out.constant(type, evaluate(op, out.type(op.in[0]).dtype, type.dtype, literals));
}

std::optional<ValueId> fold_binary(Rewrite& out, const Operation& op, const Type& type) {
  const ValueId a = op.in[0], b = op.in[1];
  const DType dtype = out.type(a).dtype;
  const auto left = out.literal(a), right = out.literal(b);
  const Mirror* mirror = row_of(kMirrors, op.function);
  const auto map = [&](Function function, ValueId x, ValueId y) {
    return make(out, {.code = Code::Map, .function = function, .in = {x, y}}, type);
  };
  for (const Identity& identity : kIdentities) {
    if (identity.function != op.function || (is_float(dtype) && !identity.floats)) continue;
    if (right && equals(dtype, *right, identity.constant))
      return identity.result == Identity::Left ? a : b;
    if (left && mirror != nullptr && equals(dtype, *left, identity.constant))
      return identity.result == Identity::Left ? b : a;
  }
  if (is_float(dtype)) return {};
  if (const Doubled* doubled = row_of(kDoubled, op.function); doubled != nullptr && a == b) {
    if (doubled->result == Doubled::Operand) return a;
    return out.constant(type, {0, doubled->result == Doubled::One ? 1 : 0});
  }
  if (left && mirror != nullptr) return map(mirror->mirrored, b, a);
  if (!right) return {};
  // A difference becomes a sum, which is the canonical form.
  if (op.function == Function::Sub && is_signed(dtype)) {
    const Operation negate{.code = Code::Map, .function = Function::Neg};
    return map(Function::Add, a, out.constant(type, evaluate(negate, dtype, dtype, {*right})));
  }
  const Operation* inner = out.definition(a);
  if (mirror == nullptr || !mirror->associative || inner == nullptr || inner->code != Code::Map ||
      inner->function != op.function)
    return {};
  const auto nested = out.literal(inner->in[1]);
  if (!nested) return {};
  const ValueId x = inner->in[0];
  return map(op.function, x, out.constant(type, evaluate(op, dtype, dtype, {*nested, *right})));
}

std::optional<ValueId> fold_map(Rewrite& out, const Operation& op, const Type& type) {
  if (op.in.size() == 2) return fold_binary(out, op, type);
  const Operation* inner = out.definition(op.in[0]);
  switch (op.function) {
    case Function::Select:
      if (op.in[1] == op.in[2]) return op.in[1];
      if (const auto condition = out.literal(op.in[0]))
        return op.in[condition->integer != 0 ? 1 : 2];
      return {};
    case Function::Neg:
    case Function::Not:
      if (inner != nullptr && inner->code == Code::Map && inner->function == op.function)
        return inner->in[0];
      return {};
    default: return {};
  }
}

std::optional<ValueId> fold_cast(Rewrite& out, const Operation& op, const Type& type) {
  const ValueId x = op.in[0];
  if (out.type(x) == type) return x;
  const Operation* inner = out.definition(x);
  if (inner == nullptr || inner->code != op.code) return {};
  const ValueId source = inner->in[0];
  const bool is_address = out.type(source).is_pointer() || out.type(source).dtype == DType::I64;
  if (type.is_pointer() && !is_address) return {};
  if (out.type(source).is_pointer() && !type.is_pointer() && type.dtype != DType::I64) return {};
  if (op.code == Code::Bitcast || widens(out.type(source).dtype, out.type(x).dtype))
    return make(out, {.code = op.code, .in = {source}}, type);
  return {};
}

/// map(broadcast(a), broadcast(b)) => broadcast(map(a, b)), where that is less work. Operands with
/// extents 1 on different axes are broadcast to the smallest shape that has them all.
std::optional<ValueId> sink_broadcasts(Rewrite& out, const Operation& op, const Type& type) {
  if (!type.is_tile()) return {};
  std::vector<ValueId> sources;
  Extents shape(type.shape.size(), 1);
  bool scalars = true;
  for (const ValueId in : op.in) {
    const Operation* made = out.definition(in);
    const bool constant = out.literal(in).has_value();
    const bool wide = made != nullptr && made->code == Code::Broadcast;
    sources.push_back(wide ? made->in[0] : in);
    if (constant || out.type(sources.back()).is_scalar()) continue;
    scalars = false;
    const Extents& extents = out.type(sources.back()).shape;
    for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = std::max(shape[i], extents[i]);
  }
  if (scalars) shape.clear();
  const Type small = type.shaped(shape);
  if (small.count() >= type.count()) return {};
  Operation less = op;
  for (std::size_t i = 0; i < op.in.size(); ++i) {
    Type operand = out.type(op.in[i]).shaped(shape);
    if (const auto literal = out.literal(sources[i]))
      less.in[i] = out.constant(operand, *literal);
    else if (out.type(sources[i]) == operand)
      less.in[i] = sources[i];
    else
      less.in[i] = make(out, {.code = Code::Broadcast, .in = {sources[i]}}, operand);
  }
  const ValueId result = make(out, less, small);
  return make(out, {.code = Code::Broadcast, .in = {result}}, type);
}

}  // namespace

std::optional<ValueId> fold_number(Rewrite& out, const Operation& op, const Type& type) {
  std::optional<ValueId> found;
  switch (op.code) {
    case Code::Map:
      found = fold_constants(out, op, type);
      if (!found) found = fold_map(out, op, type);
      break;
    case Code::Cast:
    case Code::Bitcast:
      if (type.is_number()) found = fold_constants(out, op, type);
      if (!found) found = fold_cast(out, op, type);
      break;
    case Code::Offset:
      if (const auto by = out.literal(op.in[1]); by && by->integer == 0) return op.in[0];
      break;
    default: return {};
  }
  return found ? found : sink_broadcasts(out, op, type);
}

}  // namespace tessera::tile
