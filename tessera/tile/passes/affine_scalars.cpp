#include "tessera/tile/passes/affine_scalars.h"

namespace tessera::tile {
namespace {

constexpr std::size_t kMostScalarTerms = 32;

}  // namespace

AffineScalars::AffineScalars(const Kernel& kernel)
    : kernel_(kernel), facts_(facts_of(kernel)), definitions_(definitions(kernel)) {}

AffineScalar AffineScalars::of(ValueId scalar) const {
  constexpr int kMostDepth = 64;
  const auto leaf = AffineScalar::of(scalar);
  if (const auto it = known_.find(scalar); it != known_.end()) return it->second;
  if (depth_ >= kMostDepth) return leaf;
  ++depth_;
  auto form = parts(scalar);
  --depth_;
  return known_[scalar] = form && form->terms.size() <= kMostScalarTerms ? *form : leaf;
}

std::optional<AffineScalar> AffineScalars::parts(ValueId scalar) const {
  const Type& type = kernel_.type(scalar);
  if (!definitions_[scalar] || !type.is_number() || !type.is_scalar() || !is_integer(type.dtype))
    return {};
  const Operation& op = kernel_.ops[*definitions_[scalar]];
  if (op.code == Code::Const) return AffineScalar::constant(op.literal.integer);
  if (op.code == Code::Hint) return of(op.in[0]);
  if (op.code == Code::Cast) {
    const DType from = kernel_.type(op.in[0]).dtype;
    const bool keeps = is_integer(from) && fits(range_of(facts_[op.in[0]]), type.dtype);
    return keeps ? std::optional(of(op.in[0])) : std::nullopt;
  }
  if (op.code != Code::Map || op.in.size() > 2 || type.dtype == DType::U64) return {};
  const Interval a = range_of(facts_[op.in.front()]), b = range_of(facts_[op.in.back()]);
  switch (op.function) {
    case Function::Neg:
      if (!fits(negate(a), type.dtype)) return {};
      return of(op.in[0]).times(-1);
    case Function::Add:
      if (!fits(add(a, b), type.dtype)) return {};
      return of(op.in[0]).plus(of(op.in[1]));
    case Function::Sub:
      if (!fits(add(a, negate(b)), type.dtype)) return {};
      return of(op.in[0]).plus(of(op.in[1]), -1);
    case Function::Mul: {
      if (!fits(multiply(a, b), type.dtype)) return {};
      const AffineScalar left = of(op.in[0]), right = of(op.in[1]);
      if (right.is_constant()) return left.times(right.base);
      if (left.is_constant()) return right.times(left.base);
      return {};
    }
    default: return {};
  }
}

Interval AffineScalars::bounds(const AffineScalar& form) const {
  Interval range{form.base, form.base};
  for (const auto& [value, factor] : form.terms)
    range = add(range, multiply(range_of(facts_[value]), {factor, factor}));
  return range;
}

}  // namespace tessera::tile
