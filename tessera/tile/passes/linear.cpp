#include "tessera/tile/passes/linear.h"

#include <algorithm>

namespace tessera::tile {
namespace {

constexpr std::size_t kMostLinearTerms = 32;

std::optional<std::int64_t> plus_product(std::int64_t a, std::int64_t b, std::int64_t factor) {
  std::int64_t product = 0, sum = 0;
  if (__builtin_mul_overflow(b, factor, &product) || __builtin_add_overflow(a, product, &sum))
    return {};
  return sum;
}

}  // namespace

std::optional<Linear> combine(const Linear& a, const Linear& b, std::int64_t factor) {
  const auto base = plus_product(a.base, b.base, factor);
  if (!base) return {};
  Linear sum{.base = *base};
  std::size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    const bool left =
        i < a.terms.size() && (j == b.terms.size() || a.terms[i].value <= b.terms[j].value);
    const bool right =
        j < b.terms.size() && (i == a.terms.size() || b.terms[j].value <= a.terms[i].value);
    const ValueId value = left ? a.terms[i].value : b.terms[j].value;
    const auto total =
        plus_product(left ? a.terms[i].factor : 0, right ? b.terms[j].factor : 0, factor);
    if (!total) return {};
    if (*total != 0) sum.terms.push_back({value, *total});
    i += left ? 1 : 0, j += right ? 1 : 0;
  }
  return sum;
}

std::int64_t factor_of(const Linear& form, ValueId value) {
  const auto it = std::find_if(form.terms.begin(), form.terms.end(),
                               [&](const Linear::Term& term) { return term.value == value; });
  return it == form.terms.end() ? 0 : it->factor;
}

LinearForms::LinearForms(const Kernel& kernel)
    : kernel_(kernel), facts_(facts_of(kernel)), definitions_(definitions(kernel)) {}

Linear LinearForms::of(ValueId scalar) const {
  constexpr int kMostDepth = 64;
  const Linear leaf{.terms = {{scalar, 1}}};
  if (const auto it = known_.find(scalar); it != known_.end()) return it->second;
  if (depth_ >= kMostDepth) return leaf;
  ++depth_;
  auto form = parts(scalar);
  --depth_;
  return known_[scalar] = form && form->terms.size() <= kMostLinearTerms ? *form : leaf;
}

std::optional<Linear> LinearForms::parts(ValueId scalar) const {
  const Type& type = kernel_.type(scalar);
  if (!definitions_[scalar] || !type.is_number() || !type.is_scalar() || !is_integer(type.dtype))
    return {};
  const Operation& op = kernel_.ops[*definitions_[scalar]];
  if (op.code == Code::Const) return Linear{.base = op.literal.integer};
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
      return combine({}, of(op.in[0]), -1);
    case Function::Add:
      if (!fits(add(a, b), type.dtype)) return {};
      return combine(of(op.in[0]), of(op.in[1]), 1);
    case Function::Sub:
      if (!fits(add(a, negate(b)), type.dtype)) return {};
      return combine(of(op.in[0]), of(op.in[1]), -1);
    case Function::Mul: {
      if (!fits(multiply(a, b), type.dtype)) return {};
      const Linear left = of(op.in[0]), right = of(op.in[1]);
      if (right.terms.empty()) return combine({}, left, right.base);
      if (left.terms.empty()) return combine({}, right, left.base);
      return {};
    }
    default: return {};
  }
}

Interval LinearForms::bounds(const Linear& form) const {
  Interval range{form.base, form.base};
  for (const Linear::Term& term : form.terms)
    range = add(range, multiply(range_of(facts_[term.value]), {term.factor, term.factor}));
  return range;
}

Linear linear_of(const Kernel& kernel, ValueId scalar) {
  return LinearForms(kernel).of(scalar);
}

}  // namespace tessera::tile
