#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "tessera/triton/lowering.h"

namespace tessera::triton {
namespace {

using tile::ValueId;
using F = tile::Function;

/// Operation of MLIR that is a function of elements.
struct ElementwiseOp {
  std::string_view name;
  F function;
  int operands;
  bool is_unsigned = false;
};

constexpr std::array kElementwise = {
    ElementwiseOp{"arith.addi", F::Add, 2},         ElementwiseOp{"arith.subi", F::Sub, 2},
    ElementwiseOp{"arith.muli", F::Mul, 2},         ElementwiseOp{"arith.divsi", F::Div, 2},
    ElementwiseOp{"arith.divui", F::Div, 2, true},  ElementwiseOp{"arith.remsi", F::Rem, 2},
    ElementwiseOp{"arith.remui", F::Rem, 2, true},  ElementwiseOp{"arith.andi", F::And, 2},
    ElementwiseOp{"arith.ori", F::Or, 2},           ElementwiseOp{"arith.xori", F::Xor, 2},
    ElementwiseOp{"arith.shli", F::Shl, 2},         ElementwiseOp{"arith.shrsi", F::Shr, 2},
    ElementwiseOp{"arith.shrui", F::Shr, 2, true},  ElementwiseOp{"arith.minsi", F::Min, 2},
    ElementwiseOp{"arith.minui", F::Min, 2, true},  ElementwiseOp{"arith.maxsi", F::Max, 2},
    ElementwiseOp{"arith.maxui", F::Max, 2, true},  ElementwiseOp{"arith.addf", F::Add, 2},
    ElementwiseOp{"arith.subf", F::Sub, 2},         ElementwiseOp{"arith.mulf", F::Mul, 2},
    ElementwiseOp{"arith.divf", F::Div, 2},         ElementwiseOp{"arith.remf", F::Rem, 2},
    ElementwiseOp{"arith.negf", F::Neg, 1},         ElementwiseOp{"arith.minnumf", F::Min, 2},
    ElementwiseOp{"arith.maxnumf", F::Max, 2},      ElementwiseOp{"arith.minimumf", F::Minimum, 2},
    ElementwiseOp{"arith.maximumf", F::Maximum, 2}, ElementwiseOp{"math.absf", F::Abs, 1},
    ElementwiseOp{"math.absi", F::Abs, 1},          ElementwiseOp{"math.ceil", F::Ceil, 1},
    ElementwiseOp{"math.cos", F::Cos, 1},           ElementwiseOp{"math.erf", F::Erf, 1},
    ElementwiseOp{"math.exp", F::Exp, 1},           ElementwiseOp{"math.exp2", F::Exp2, 1},
    ElementwiseOp{"math.floor", F::Floor, 1},       ElementwiseOp{"math.fma", F::Fma, 3},
    ElementwiseOp{"math.log", F::Log, 1},           ElementwiseOp{"math.log2", F::Log2, 1},
    ElementwiseOp{"math.powf", F::Pow, 2},          ElementwiseOp{"math.roundeven", F::Round, 1},
    ElementwiseOp{"math.rsqrt", F::Rsqrt, 1},       ElementwiseOp{"math.sin", F::Sin, 1},
    ElementwiseOp{"math.sqrt", F::Sqrt, 1},         ElementwiseOp{"math.tanh", F::Tanh, 1},
    ElementwiseOp{"tt.precise_sqrt", F::Sqrt, 1},   ElementwiseOp{"tt.approx_divf", F::Div, 2},
    ElementwiseOp{"tt.mulhiui", F::MulHi, 2, true},
};

bool is_cast(std::string_view name) {
  constexpr std::array kCasts = {
      "arith.extsi",  "arith.extui",  "arith.trunci",  "arith.sitofp",  "arith.uitofp",
      "arith.fptosi", "arith.fptoui", "arith.extf",    "arith.truncf",  "arith.bitcast",
      "tt.bitcast",   "tt.fp_to_fp",  "tt.int_to_ptr", "tt.ptr_to_int", "arith.index_cast"};
  return std::find(kCasts.begin(), kCasts.end(), name) != kCasts.end();
}

/// Arithmetic of one bit, which tile IR's bools do not have.
F bit_function(F function) {
  switch (function) {
    case F::Add:
    case F::Sub: return F::Xor;
    case F::Mul:
    case F::Min: return F::And;
    case F::Max: return F::Or;
    default: return function;
  }
}

}  // namespace

bool Lowering::lower_arith(const Operation& op) {
  if (op.name == "arith.constant") return lower_constant(op), true;
  if (op.name == "arith.cmpi") return lower_compare_integers(op), true;
  if (op.name == "arith.cmpf") return lower_compare_floats(op), true;
  if (op.name == "arith.select") return lower_select(op), true;
  if (op.name == "tt.extern_elementwise") return lower_extern(op), true;
  if (is_cast(op.name)) return lower_cast(op), true;
  if (op.name == "tt.precise_divf") {
    // Back ends may divide f32 to a few ulp; a quotient of f64 rounds to the right one.
    const Lowered a = operand(op, 0), b = operand(op, 1);
    if (carrier_of(a.type.element) == DType::F32) {
      const ValueId quotient = map(F::Div, {as(a.id, DType::F64), as(b.id, DType::F64)});
      result(op, a.type, as(quotient, DType::F32));
    } else {
      result(op, a.type, map(F::Div, {a.id, b.id}));
    }
    return true;
  }
  if (op.name == "tt.clampf") {
    const Lowered x = operand(op, 0);
    const Attribute* nan = op.attribute("propagateNan");
    const bool keeps = nan != nullptr && nan->text == "all";
    const ValueId above = map(keeps ? F::Maximum : F::Max, {x.id, operand(op, 1).id});
    result(op, x.type, map(keeps ? F::Minimum : F::Min, {above, operand(op, 2).id}));
    return true;
  }
  const auto row = std::find_if(kElementwise.begin(), kElementwise.end(),
                                [&](const ElementwiseOp& r) { return r.name == op.name; });
  if (row == kElementwise.end()) return false;
  const Lowered a = operand(op, 0);
  if (is_float8(a.type.element) && (row->function == F::Abs || row->function == F::Neg)) {
    const bool clears = row->function == F::Abs;  // the sign
    ValueId id = map(clears ? F::And : F::Xor, {a.id, integer(a.id, clears ? 0x7f : 0x80)});
    if (a.type.element == Element::F8E4M3FNUZ || a.type.element == Element::F8E5M2FNUZ) {
      // 0 has no sign there, and the NaN is what would be -0.
      const ValueId magnitude = map(F::And, {a.id, integer(a.id, 0x7f)});
      id = select(map(F::Equal, {magnitude, integer(a.id, 0)}), a.id, id);
    }
    result(op, a.type, id);
    return true;
  }
  if (is_float8(a.type.element) || a.type.is_pointer()) {
    unsupported(op, fmt::format("operands of {}", to_string(a.type)));
    return true;
  }
  if (row->operands == 1) {
    result(op, a.type, map(row->function, {a.id}));
  } else if (row->operands == 2) {
    result(op, a.type, binary(row->function, a, operand(op, 1), row->is_unsigned));
  } else {
    result(op, a.type, map(row->function, {a.id, operand(op, 1).id, operand(op, 2).id}));
  }
  return true;
}

ValueId Lowering::binary(F function, const Lowered& a, const Lowered& b, bool is_unsigned) {
  if (a.type.element == Element::I1) return map(bit_function(function), {a.id, b.id});
  if (!is_unsigned) return map(function, {a.id, b.id});
  const DType dtype = carrier_of(a.type.element);
  const ValueId result =
      map(function, {reinterpret(a.id, unsigned_of(dtype)), reinterpret(b.id, unsigned_of(dtype))});
  return reinterpret(result, dtype);
}

/// A number of a constant, in every element of a type.
ValueId Lowering::constant_of(const Number& number, const Type& type) {
  const Element element = type.element;
  const tile::Type made = tile_type(type);
  if (element == Element::I1)
    return builder_.constant(made, tile::Literal{.integer = number.integer & 1});
  if (is_integer(element))
    return builder_.constant(made,
                             tile::Literal{.integer = wrapped_to(made.dtype, number.integer)});
  if (number.kind == Number::Kind::Bits) {
    const auto bits = static_cast<std::uint64_t>(number.integer);
    if (element == Element::F64) return builder_.constant(made, std::bit_cast<double>(bits));
    if (element == Element::F32)
      return builder_.constant(made, std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    tile::Type pattern = made;
    pattern.dtype = unsigned_bits(bit_width(element));
    return reinterpret(
        builder_.constant(pattern,
                          tile::Literal{.integer = wrapped_to(pattern.dtype, number.integer)}),
        made.dtype);
  }
  const double value =
      number.kind == Number::Kind::Float ? number.number : static_cast<double>(number.integer);
  if (!is_float8(element)) return builder_.constant(made, value);
  return encoded(element, builder_.constant(made.of(DType::F32), value), false);
}

void Lowering::lower_constant(const Operation& op) {
  if (op.constant.empty()) return malformed(op, "there is no value");
  Type type{.element = Element::I1};  // `arith.constant true` has no type
  if (!op.types.empty()) type = op.types[0];
  if (op.types.empty() && !op.words.empty())
    return unsupported(op, fmt::format("type {}", op.words[0].text));
  if (type.is_pointer()) return unsupported(op, "constant pointers");
  const bool has_fraction =
      std::any_of(op.constant.begin(), op.constant.end(),
                  [](const Number& n) { return n.kind == Number::Kind::Float; });
  if (has_fraction && is_integer(type.element))
    return malformed(op, fmt::format("a float for {}", to_string(type)));
  const std::size_t count = op.constant.size();
  if (count == 1) return result(op, type, constant_of(op.constant[0], type));
  std::int64_t elements = 1;
  for (const std::int64_t extent : type.shape) elements *= extent;
  if (static_cast<std::int64_t>(count) != elements || elements > 4096)
    return unsupported(op, fmt::format("a constant of {} numbers for {}", count, to_string(type)));
  std::vector<ValueId> parts;
  for (const Number& number : op.constant)
    parts.push_back(builder_.reshape(constant_of(number, {.element = type.element}), {1}));
  result(op, type, shaped(builder_.concat(parts, 0), type.shape));
}

void Lowering::lower_compare_integers(const Operation& op) {
  Lowered a = operand(op, 0), b = operand(op, 1);
  const std::string predicate = op.words.empty() ? "" : op.words[0].text;
  constexpr std::array<std::pair<std::string_view, F>, 10> kPredicates = {
      {{"eq", F::Equal},
       {"ne", F::NotEqual},
       {"slt", F::Less},
       {"sle", F::LessEqual},
       {"sgt", F::Greater},
       {"sge", F::GreaterEqual},
       {"ult", F::Less},
       {"ule", F::LessEqual},
       {"ugt", F::Greater},
       {"uge", F::GreaterEqual}}};
  const auto found = std::find_if(kPredicates.begin(), kPredicates.end(),
                                  [&](const auto& row) { return row.first == predicate; });
  if (found == kPredicates.end()) return malformed(op, fmt::format("predicate {}", predicate));
  const bool is_unsigned = predicate[0] == 'u';
  ValueId x = a.id, y = b.id;
  if (a.type.is_pointer()) {
    x = builder_.address(x);
    y = builder_.address(y);
  } else if (a.type.element == Element::I1 && found->second != F::Equal &&
             found->second != F::NotEqual) {
    x = as(x, DType::I8);
    y = as(y, DType::I8);
    if (!is_unsigned) std::swap(x, y);  // as a signed number, true is -1
  } else if (is_unsigned) {
    x = reinterpret(x, unsigned_of(builder_.type(x).dtype));
    y = reinterpret(y, unsigned_of(builder_.type(y).dtype));
  }
  Type type = a.type.of(Element::I1);
  type.pointers = 0;
  result(op, type, map(found->second, {x, y}));
}

void Lowering::lower_compare_floats(const Operation& op) {
  const Lowered a = operand(op, 0), b = operand(op, 1);
  const std::string predicate = op.words.empty() ? "" : op.words[0].text;
  const auto is = [&](F function) { return map(function, {a.id, b.id}); };
  const auto both = [&](F function, ValueId x, ValueId y) { return map(function, {x, y}); };
  const auto unordered = [&] {
    return both(F::Or, map(F::NotEqual, {a.id, a.id}), map(F::NotEqual, {b.id, b.id}));
  };
  const auto inverse = [&](ValueId x) { return map(F::Not, {x}); };
  ValueId id = 0;
  if (predicate == "oeq")
    id = is(F::Equal);
  else if (predicate == "ogt")
    id = is(F::Greater);
  else if (predicate == "oge")
    id = is(F::GreaterEqual);
  else if (predicate == "olt")
    id = is(F::Less);
  else if (predicate == "ole")
    id = is(F::LessEqual);
  else if (predicate == "one")
    id = both(F::Or, is(F::Less), is(F::Greater));
  else if (predicate == "ord")
    id = inverse(unordered());
  else if (predicate == "ueq")
    id = inverse(both(F::Or, is(F::Less), is(F::Greater)));
  else if (predicate == "ugt")
    id = inverse(is(F::LessEqual));
  else if (predicate == "uge")
    id = inverse(is(F::Less));
  else if (predicate == "ult")
    id = inverse(is(F::GreaterEqual));
  else if (predicate == "ule")
    id = inverse(is(F::Greater));
  else if (predicate == "une")
    id = is(F::NotEqual);
  else if (predicate == "uno")
    id = unordered();
  else
    return malformed(op, fmt::format("predicate {}", predicate));
  result(op, a.type.of(Element::I1), id);
}

void Lowering::lower_select(const Operation& op) {
  const Lowered condition = operand(op, 0), a = operand(op, 1), b = operand(op, 2);
  ValueId choice = condition.id;
  if (a.type.is_tensor && !condition.type.is_tensor)
    choice = builder_.broadcast(choice, a.type.shape);
  if (!a.type.is_pointer()) return result(op, a.type, select(choice, a.id, b.id));
  const ValueId address = select(choice, builder_.address(a.id), builder_.address(b.id));
  result(op, a.type, builder_.pointer_cast(address, tile_type(a.type).dtype));
}

// Casts

void Lowering::lower_cast(const Operation& op) {
  const Lowered x = operand(op, 0);
  const Type to = result_type(op);
  if (builder_.failed()) return;
  const Attribute* rounding = op.attribute("rounding");
  const bool toward_zero = rounding != nullptr && rounding->text == "rtz";
  const std::string& name = op.name;
  if (to.is_pointer() || x.type.is_pointer()) {
    const DType dtype = tile_type(to).dtype;
    if (!to.is_pointer()) return result(op, to, builder_.address(x.id));
    if (x.type.is_pointer() && tile_type(x.type).dtype == dtype) return result(op, to, x.id);
    return result(op, to, builder_.pointer_cast(x.id, dtype));
  }
  if (name == "arith.extsi" || name == "arith.extui" || name == "arith.trunci" ||
      name == "arith.index_cast") {
    return result(op, to, integer_cast(x, to, name == "arith.extui"));
  }
  if (name == "arith.sitofp" || name == "arith.uitofp") {
    const bool is_unsigned = name == "arith.uitofp";
    ValueId from = x.id;
    if (is_unsigned) from = reinterpret(from, unsigned_of(builder_.type(from).dtype));
    if (x.type.element == Element::I1 && !is_unsigned) from = map(F::Neg, {as(from, DType::I8)});
    if (is_float8(to.element))
      return result(op, to, encoded(to.element, as(from, DType::F32), toward_zero));
    return result(op, to, as(from, carrier_of(to.element)));
  }
  if (name == "arith.fptosi" || name == "arith.fptoui") {
    const ValueId from = is_float8(x.type.element) ? decoded(x.type.element, x.id) : x.id;
    const DType dtype = carrier_of(to.element);
    const DType through = name == "arith.fptoui" ? unsigned_of(dtype) : dtype;
    return result(op, to, reinterpret(as(from, through), dtype));
  }
  if (name == "tt.bitcast" || name == "arith.bitcast") {
    if (x.type.element == Element::I1 || to.element == Element::I1) {
      return result(op, to, x.type.element == to.element ? x.id : integer_cast(x, to, true));
    }
    return result(op, to, reinterpret(x.id, carrier_of(to.element)));
  }
  result(op, to, float_cast(x, to, toward_zero));
}

ValueId Lowering::integer_cast(const Lowered& x, const Type& to, bool is_unsigned) {
  const DType from = carrier_of(x.type.element), dtype = carrier_of(to.element);
  if (from == dtype) return x.id;
  if (to.element == Element::I1) {  // the lowest bit
    return as(map(F::And, {x.id, integer(x.id, 1)}), DType::Bool);
  }
  if (x.type.element == Element::I1) {
    const ValueId wide = as(x.id, dtype);
    return is_unsigned ? wide : map(F::Neg, {wide});
  }
  return as(is_unsigned ? reinterpret(x.id, unsigned_of(from)) : x.id, dtype);
}

ValueId Lowering::float_cast(const Lowered& x, const Type& to, bool toward_zero) {
  ValueId from = x.id;
  Element source = x.type.element;
  if (is_float8(source)) {
    if (source == to.element) return from;
    from = decoded(source, from);
    source = Element::F32;
  }
  if (is_float8(to.element)) return encoded(to.element, as(from, DType::F32), toward_zero);
  const DType dtype = carrier_of(to.element);
  if (builder_.type(from).dtype == dtype) return from;
  const ValueId nearest = as(from, dtype);
  if (!toward_zero || bit_width(to.element) >= bit_width(source)) return nearest;
  // One step back where rounding went away from zero: the bits of a float are ordered like
  // magnitudes.
  const DType bits = unsigned_bits(bit_width(to.element));
  const DType wide = builder_.type(from).dtype;
  const ValueId beyond = map(F::Greater, {map(F::Abs, {as(nearest, wide)}), map(F::Abs, {from})});
  const ValueId pattern = builder_.bitcast(nearest, bits);
  return builder_.bitcast(select(beyond, map(F::Sub, {pattern, integer(pattern, 1)}), pattern),
                          dtype);
}

}  // namespace tessera::triton
