#include "tessera/program/evenly.h"

#include <utility>

namespace tessera::program {

const std::string* axis_of(const Scalar& scalar) {
  const auto* index = std::get_if<node::Index>(&scalar.node());
  return index == nullptr ? nullptr : &index->axis;
}

std::optional<Evenly> evenly(const Scalar& scalar) {
  if (const auto number = scalar.integer()) return Evenly{.base = *number};
  if (const std::string* axis = axis_of(scalar)) return Evenly{.times = {{*axis, 1}}};
  const auto* apply = std::get_if<node::Apply>(&scalar.node());
  if (apply == nullptr || apply->args.size() != 2) return std::nullopt;
  auto a = evenly(apply->args[0]), b = evenly(apply->args[1]);
  if (!a || !b) return std::nullopt;
  if (apply->fn == Fn::Mul) {
    if (!a->times.empty()) std::swap(a, b);
    if (!a->times.empty()) return std::nullopt;
    b->base *= a->base;
    for (auto& [axis, times] : b->times) times *= a->base;
    return b;
  }
  if (apply->fn != Fn::Add && apply->fn != Fn::Sub) return std::nullopt;
  const std::int64_t sign = apply->fn == Fn::Add ? 1 : -1;
  a->base += sign * b->base;
  for (const auto& [axis, times] : b->times) a->times[axis] += sign * times;
  return a;
}

bool stays_within(const Scalar& scalar, std::int64_t size,
                  const std::map<std::string, std::int64_t>& extents) {
  const auto form = evenly(scalar);
  if (!form) return false;
  std::int64_t low = form->base, high = form->base;
  for (const auto& [axis, times] : form->times) {
    const auto extent = extents.find(axis);
    if (extent == extents.end()) return false;
    (times < 0 ? low : high) += times * (extent->second - 1);
  }
  return low >= 0 && high < size;
}

}  // namespace tessera::program
