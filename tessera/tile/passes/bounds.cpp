#include "tessera/tile/passes/bounds.h"

#include <algorithm>
#include <numeric>

namespace tessera::tile {

bool is_access(const Operation& op) {
  return op.code == Code::Vload || op.code == Code::Vstore;
}

Bounds::Bounds(const Kernel& kernel)
    : kernel_(kernel), forms_(kernel), definitions_(definitions(kernel)) {
  for_each_op(kernel, kernel.body, [&](OpId id) {
    const Operation& op = kernel.ops[id];
    if (op.code == Code::For) loops_[op.regions[0].params[0]] = &op;
    if (op.code == Code::Dim) extents_[{op.in[0], op.ints[0]}] = op.out[0];
  });
}

std::optional<AffineScalar> Bounds::gap(const Operation& access, std::size_t axis) const {
  const Type& tile = kernel_.type(access.code == Code::Vload ? access.out[0] : access.in.back());
  const auto end = extent(access.in[0], axis);
  const auto gap = end ? end->plus(forms_.of(access.in[1 + axis]), -1) : std::nullopt;
  return gap ? gap->plus(AffineScalar::constant(tile.shape[axis]), -1) : std::nullopt;
}

bool Bounds::begins_inside(const Operation& access, std::size_t axis) const {
  return not_negative(forms_.of(access.in[1 + axis]));
}

// Bounds a form by the ranges of its values; repeatedly substitutes the last value that has a
// symbolic bound.
bool Bounds::not_negative(AffineScalar form) const {
  constexpr int kMostBounds = 8;
  for (int i = 0; i < kMostBounds; ++i) {
    if (const auto least = forms_.bounds(form).low; least && *least >= 0) return true;
    std::optional<AffineScalar> next;
    for (auto term = form.terms.rbegin(); !next && term != form.terms.rend(); ++term)
      next = without(form, *term);
    if (!next) return false;
    form = *std::move(next);
  }
  return false;
}

bool Bounds::steps_forward(const Operation& loop) const {
  const Facts& step = forms_.facts()[loop.in[2]];
  return step.low && *step.low >= 1;
}

/// Lower bound of a form without one of its terms.
std::optional<AffineScalar> Bounds::without(const AffineScalar& form,
                                            const AffineScalar::Term& term) const {
  const auto rest = form.plus(AffineScalar::of(term.variable), -term.factor);
  if (!rest) return {};
  if (const auto it = loops_.find(term.variable); it != loops_.end()) {
    const auto extreme = term.factor > 0 ? first(*it->second) : last(*it->second);
    return extreme ? rest->plus(*extreme, term.factor) : std::nullopt;
  }
  // For q = x / c:  x - c + 1 <= c * q <= x, where x is not negative.
  if (!definitions_[term.variable]) return {};
  const Operation& op = kernel_.ops[*definitions_[term.variable]];
  if (op.code != Code::Map || op.function != Function::Div) return {};
  const AffineScalar x = forms_.of(op.in[0]), by = forms_.of(op.in[1]);
  if (!by.is_constant() || by.base < 1 || term.factor % by.base != 0) return {};
  if (const auto least = forms_.bounds(x).low; !least || *least < 0) return {};
  const auto bound = x.plus(AffineScalar::constant(term.factor > 0 ? by.base - 1 : 0), -1);
  return bound ? rest->plus(*bound, term.factor / by.base) : std::nullopt;
}

std::optional<AffineScalar> Bounds::first(const Operation& loop) const {
  if (!steps_forward(loop)) return {};
  return forms_.of(loop.in[0]);
}

/// Last value of the index: to - 1, or to - step where the steps end there.
std::optional<AffineScalar> Bounds::last(const Operation& loop) const {
  const AffineScalar to = forms_.of(loop.in[1]), step = forms_.of(loop.in[2]);
  const auto whole = to.plus(forms_.of(loop.in[0]), -1);
  if (!whole) return {};
  std::int64_t divisor = whole->base;
  for (const AffineScalar::Term& term : whole->terms) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(term.factor, forms_.facts()[term.variable].divisor, &product))
      product = forms_.facts()[term.variable].divisor;
    divisor = std::gcd(divisor, product);
  }
  const bool even = step.is_constant() && step.base > 0 && divisor % step.base == 0;
  return to.plus(AffineScalar::constant(even ? step.base : 1), -1);
}

std::optional<AffineScalar> Bounds::extent(ValueId view, std::size_t axis) const {
  const Type& type = kernel_.type(view);
  if (type.shape[axis] != kDynamic) return AffineScalar::constant(type.shape[axis]);
  if (const auto it = extents_.find({view, static_cast<std::int64_t>(axis)}); it != extents_.end())
    return forms_.of(it->second);
  if (!definitions_[view] || kernel_.ops[*definitions_[view]].code != Code::View) return {};
  const auto open = std::count(type.shape.begin(),
                               type.shape.begin() + static_cast<std::ptrdiff_t>(axis), kDynamic);
  return forms_.of(kernel_.ops[*definitions_[view]].in[1 + static_cast<std::size_t>(open)]);
}

}  // namespace tessera::tile
