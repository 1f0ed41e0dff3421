#include "tessera/lower/bytes.h"

#include <algorithm>

#include "tessera/expr/walk.h"

namespace tessera::lower {
namespace {

bool is_byte(DType dtype) {
  return dtype == DType::I8 || dtype == DType::U8;
}

bool varies_with(const Scalar& scalar, const Fold& sum) {
  const auto axes = axes_in(scalar);
  return std::ranges::any_of(sum.bounds, [&](const Bound& b) { return axes.contains(b.axis); });
}

/// The dtype of 8 bits that a number is of: what is read, or what it is converted to.
std::optional<DType> byte_of(const Scalar& scalar, const tile::Stage& stage) {
  if (const auto* cast = std::get_if<node::Cast>(&scalar.node()))
    return is_byte(cast->to) ? std::optional(cast->to) : std::nullopt;
  const auto* read = std::get_if<node::Read>(&scalar.node());
  if (read == nullptr) return std::nullopt;
  const auto operand = std::ranges::find(stage.operands, read->operand, &Operand::name);
  if (operand == stage.operands.end() || !is_byte(operand->dtype)) return std::nullopt;
  if (read->otherwise == nullptr) return operand->dtype;
  // What is beyond the tensor has to be of the same kind.
  const Scalar& beyond = *read->otherwise;
  if (const auto number = beyond.integer()) {
    const std::int64_t low = operand->dtype == DType::I8 ? -128 : 0;
    return *number >= low && *number <= low + 255 ? std::optional(operand->dtype) : std::nullopt;
  }
  return byte_of(beyond, stage) == operand->dtype ? std::optional(operand->dtype) : std::nullopt;
}

std::optional<ByteFactor> byte_factor(const Scalar& factor, const tile::Stage& stage,
                                      const Fold& sum) {
  if (const auto dtype = byte_of(factor, stage)) return ByteFactor{.byte = factor, .dtype = *dtype};
  // What is of 8 bits is the same in more of them.
  if (const auto* cast = std::get_if<node::Cast>(&factor.node()))
    if (cast->to == DType::I32 || cast->to == DType::I64)
      if (const auto dtype = byte_of(*cast->arg, stage))
        return ByteFactor{.byte = *cast->arg, .dtype = *dtype};
  const auto* apply = std::get_if<node::Apply>(&factor.node());
  if (apply == nullptr || (apply->fn != Fn::Add && apply->fn != Fn::Sub)) return std::nullopt;
  const Scalar& shift = apply->args[1];
  if (shift.sort() != Sort::Integer || varies_with(shift, sum)) return std::nullopt;
  auto result = byte_factor(apply->args[0], stage, sum);
  if (result && !is_zero(shift)) {
    const Scalar added = apply->fn == Fn::Add ? shift : -shift;
    result->shift = is_zero(result->shift) ? added : result->shift + added;
  }
  return result;
}

}  // namespace

std::optional<Factors> factors_of(const tile::Stage& stage, const Fold& fold) {
  if (const auto numbers = tile::product_of(fold)) return Factors{numbers->first, numbers->second};
  const auto integers = tile::product_of(fold, Sort::Integer);
  if (!integers) return std::nullopt;
  const auto a = byte_factor(integers->first, stage, fold),
             b = byte_factor(integers->second, stage, fold);
  if (!a || !b) return std::nullopt;
  return Factors{integers->first, integers->second, std::pair{*a, *b}};
}

}  // namespace tessera::lower
