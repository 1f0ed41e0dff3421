#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "tessera/triton/lowering.h"

namespace tessera::triton {
namespace {

using tile::ValueId;
using F = tile::Function;

/// Number of elements that share one scale.
constexpr std::int64_t kScaleGroup = 32;

struct ScaledOperand {
  Lowered elements = {};
  std::optional<Lowered> scale = {};
  std::string format = {};
};

}  // namespace

/// Products of numbers in a microscaling format (OCP MX): float8 or float4 elements, and a power of
/// two for every 32 of them along k. Both sides are expanded to f32.
void Lowering::lower_dot_scaled(const Operation& op) {
  std::vector<bool> is_scale(op.operands.size() + 1, false);
  for (const Operation::Word& word : op.words) {
    if (word.text == "scale" && word.position < is_scale.size()) is_scale[word.position] = true;
  }
  std::vector<ScaledOperand> sides;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (is_scale[i] && !sides.empty())
      sides.back().scale = operand(op, i);
    else
      sides.push_back({.elements = operand(op, i)});
  }
  if (sides.size() != 3) return malformed(op, "two factors and a sum");
  const ValueId sum = sides[2].elements.id;
  const char* names[2] = {"lhs", "rhs"};
  const char* packs[2] = {"lhs_k_pack", "rhs_k_pack"};
  ValueId factors[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {
    ScaledOperand& side = sides[i];
    if (const Attribute* format = op.attribute(names[i])) side.format = format->text;
    const Attribute* pack = op.attribute(packs[i]);
    const bool along_k = pack == nullptr || pack->text != "false";
    const int k_axis = i == 0 ? 1 : 0;
    const Type& type = side.elements.type;
    if (type.shape.size() != 2) return unsupported(op, "batches");
    ValueId x = side.elements.id;
    if (side.format == "e2m1") {
      const int packed_axis = along_k ? k_axis : 1 - k_axis;
      // Two numbers to a byte, the lower half first.
      const ValueId wide = as(reinterpret(x, DType::U8), DType::U32);
      const auto decode = [&](ValueId nibble) {
        const auto constant = [&](std::int64_t value) { return integer(nibble, value); };
        const ValueId magnitude = map(F::Shl, {map(F::And, {nibble, constant(7)}), constant(22)});
        const ValueId raw = builder_.bitcast(magnitude, DType::F32);
        const ValueId absolute = map(F::Mul, {raw, number(raw, std::ldexp(1.0, 126))});
        const ValueId sign = map(F::Shl, {map(F::And, {nibble, constant(8)}), constant(28)});
        return builder_.bitcast(map(F::Or, {builder_.bitcast(absolute, DType::U32), sign}),
                                DType::F32);
      };
      const ValueId low = decode(map(F::And, {wide, integer(wide, 15)}));
      const ValueId high = decode(map(F::Shr, {wide, integer(wide, 4)}));
      std::vector<std::int64_t> apart = type.shape, joined = type.shape;
      apart.insert(apart.begin() + packed_axis + 1, 1);
      joined[static_cast<std::size_t>(packed_axis)] *= 2;
      x = builder_.reshape(
          builder_.concat({builder_.reshape(low, apart), builder_.reshape(high, apart)},
                          packed_axis + 1),
          joined);
    } else if (is_float8(type.element)) {
      x = decoded(type.element, x);
    } else if (side.format == "e4m3" || side.format == "e5m2") {
      x = decoded(side.format == "e4m3" ? Element::F8E4M3FN : Element::F8E5M2,
                  reinterpret(x, DType::U8));
    } else {
      x = as(x, DType::F32);
    }
    if (side.scale) {
      // Scales are [rows, groups] for the left side and [columns, groups] for the right one.
      const Type& scale_type = side.scale->type;
      const tile::Extents shape = builder_.type(x).shape;
      const std::int64_t k = shape[static_cast<std::size_t>(k_axis)];
      const std::int64_t rows = shape[static_cast<std::size_t>(1 - k_axis)];
      if (scale_type.shape.size() != 2 || scale_type.shape[0] != rows || scale_type.shape[1] == 0 ||
          scale_type.shape[1] * kScaleGroup != k) {
        return unsupported(op, fmt::format("scales of {}", to_string(scale_type)));
      }
      ValueId scale = side.scale->id;
      if (is_float8(scale_type.element))
        return unsupported(op, "scales that are not powers of two");
      const ValueId exponent = as(reinterpret(scale, DType::U8), DType::U32);
      const ValueId bits = map(F::Shl, {exponent, integer(exponent, 23)});
      ValueId power = builder_.bitcast(bits, DType::F32);
      // An exponent of 0 is 2^-127, which is subnormal; 255 is NaN.
      power = select(map(F::Equal, {exponent, integer(exponent, 0)}),
                     number(power, std::ldexp(1.0, -127)), power);
      power = select(map(F::Equal, {exponent, integer(exponent, 255)}), number(power, NAN), power);
      const std::int64_t groups = scale_type.shape[1];
      ValueId spread = builder_.broadcast(builder_.reshape(power, {rows, groups, 1}),
                                          {rows, groups, kScaleGroup});
      spread = builder_.reshape(spread, {rows, k});
      if (k_axis == 0) spread = builder_.permute(spread, {1, 0});
      x = map(F::Mul, {x, spread});
    }
    factors[i] = x;
  }
  const DType into = builder_.type(sum).dtype;
  if (into == DType::F32)
    return result(op, sides[2].elements.type, builder_.dot(factors[0], factors[1], sum));
  result(op, sides[2].elements.type,
         as(builder_.dot(factors[0], factors[1], as(sum, DType::F32)), into));
}

}  // namespace tessera::triton
