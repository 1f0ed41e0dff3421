#include "tessera/tile/passes/inside.h"

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

std::optional<Linear> Bounds::gap(const Operation& access, std::size_t axis) const {
  const Type& tile = kernel_.type(access.code == Code::Vload ? access.out[0] : access.in.back());
  const auto end = extent(access.in[0], axis);
  const auto gap = end ? combine(*end, forms_.of(access.in[1 + axis]), -1) : std::nullopt;
  return gap ? combine(*gap, {.base = tile.shape[axis]}, -1) : std::nullopt;
}

bool Bounds::begins_inside(const Operation& access, std::size_t axis) const {
  return not_negative(forms_.of(access.in[1 + axis]));
}

// By the ranges of its values, with the last of them that has a bound replaced by it, over and
// over.
bool Bounds::not_negative(Linear form) const {
  constexpr int kMostBounds = 8;
  for (int i = 0; i < kMostBounds; ++i) {
    if (const auto least = forms_.bounds(form).low; least && *least >= 0) return true;
    std::optional<Linear> next;
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

/// A form that is at most this one and does without a term.
std::optional<Linear> Bounds::without(const Linear& form, const Linear::Term& term) const {
  const auto rest = combine(form, {.terms = {{term.value, 1}}}, -term.factor);
  if (!rest) return {};
  if (const auto it = loops_.find(term.value); it != loops_.end()) {
    const auto extreme = term.factor > 0 ? first(*it->second) : last(*it->second);
    return extreme ? combine(*rest, *extreme, term.factor) : std::nullopt;
  }
  // Of q = x / c:  x - c + 1 <= c * q <= x, where x is not negative.
  if (!definitions_[term.value]) return {};
  const Operation& op = kernel_.ops[*definitions_[term.value]];
  if (op.code != Code::Map || op.function != Function::Div) return {};
  const Linear x = forms_.of(op.in[0]), by = forms_.of(op.in[1]);
  if (!by.terms.empty() || by.base < 1 || term.factor % by.base != 0) return {};
  if (const auto least = forms_.bounds(x).low; !least || *least < 0) return {};
  const auto bound = combine(x, {.base = term.factor > 0 ? by.base - 1 : 0}, -1);
  return bound ? combine(*rest, *bound, term.factor / by.base) : std::nullopt;
}

std::optional<Linear> Bounds::first(const Operation& loop) const {
  if (!steps_forward(loop)) return {};
  return forms_.of(loop.in[0]);
}

/// Of the index: to - 1, or to - step where the steps end there.
std::optional<Linear> Bounds::last(const Operation& loop) const {
  const Linear to = forms_.of(loop.in[1]), step = forms_.of(loop.in[2]);
  const auto whole = combine(to, forms_.of(loop.in[0]), -1);
  if (!whole) return {};
  std::int64_t divisor = whole->base;
  for (const Linear::Term& term : whole->terms) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(term.factor, forms_.facts()[term.value].divisor, &product))
      product = forms_.facts()[term.value].divisor;
    divisor = std::gcd(divisor, product);
  }
  const bool even = step.terms.empty() && step.base > 0 && divisor % step.base == 0;
  return combine(to, {.base = even ? step.base : 1}, -1);
}

std::optional<Linear> Bounds::extent(ValueId view, std::size_t axis) const {
  const Type& type = kernel_.type(view);
  if (type.shape[axis] != kDynamic) return Linear{.base = type.shape[axis]};
  if (const auto it = extents_.find({view, static_cast<std::int64_t>(axis)}); it != extents_.end())
    return forms_.of(it->second);
  if (!definitions_[view] || kernel_.ops[*definitions_[view]].code != Code::View) return {};
  const auto open = std::count(type.shape.begin(),
                               type.shape.begin() + static_cast<std::ptrdiff_t>(axis), kDynamic);
  return forms_.of(kernel_.ops[*definitions_[view]].in[1 + static_cast<std::size_t>(open)]);
}

}  // namespace tessera::tile
