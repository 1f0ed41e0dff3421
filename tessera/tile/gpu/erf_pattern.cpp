#include "tessera/tile/gpu/erf_pattern.h"

namespace tessera::tile::gpu {

const Operation* ErfPattern::made_by(ValueId id) const {
  return definitions[id] ? &kernel.ops[*definitions[id]] : nullptr;
}

bool ErfPattern::is(const Operation* op, Function function) const {
  return op != nullptr && op->code == Code::Map && op->function == function &&
         kernel.type(op->out[0]).dtype == DType::F32;
}

std::optional<double> ErfPattern::constant(ValueId id) const {
  const Operation* by = made_by(id);
  while (by != nullptr && by->code == Code::Broadcast) by = made_by(by->in[0]);
  if (by == nullptr || by->code != Code::Const) return {};
  return by->literal.number;
}

ErfPattern::Multiple ErfPattern::multiple(ValueId id) const {
  const Operation* by = made_by(id);
  const bool product = is(by, Function::Mul);
  if (product || is(by, Function::Div))
    if (const auto c = constant(by->in[1])) return {by->in[0], product ? *c : 1 / *c};
  if (product)
    if (const auto c = constant(by->in[0])) return {by->in[1], *c};
  return {id, 1};
}

std::optional<ErfPattern::Multiple> ErfPattern::plus_one(const Operation& op) const {
  if (!is_fast || !is(&op, Function::Add)) return {};
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const Operation* erf = made_by(op.in[1 - side]);
    if (constant(op.in[side]) != 1.0 || !is(erf, Function::Erf)) continue;
    // The scale is folded into a polynomial: its powers have to be normal numbers.
    const Multiple found = multiple(erf->in[0]);
    return found.scale >= 0.5 && found.scale <= 2 ? found : Multiple{erf->in[0], 1};
  }
  return {};
}

std::optional<ErfPattern::Product> ErfPattern::times_plus_one(const Operation& op) const {
  if (!is(&op, Function::Mul)) return {};
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const Operation* sum = made_by(op.in[side]);
    const auto erf = sum != nullptr ? plus_one(*sum) : std::nullopt;
    const Multiple factor = multiple(op.in[1 - side]);
    if (erf && factor.of == erf->of && factor.scale > 0) return Product{op.in[1 - side], *erf};
  }
  return {};
}

}  // namespace tessera::tile::gpu
