#include "tessera/lower/affine.h"

#include <utility>
#include <vector>

#include "tessera/expr/number.h"
#include "tessera/tile/schedule.h"

namespace tessera::lower {
namespace {

Affine sum(Affine a, const Affine& b, std::int64_t times) {
  a.base += b.base * times;
  for (const auto& [name, factor] : b.factors) a.factors[name] += factor * times;
  std::erase_if(a.factors, [](const auto& entry) { return entry.second == 0; });
  return a;
}

/// What the divisor goes into evenly, and the rest, if that stays below it.
std::optional<Affine> divided(const Affine& a, std::int64_t by, bool remainder,
                              const AxisExtents& extents) {
  Affine whole{.base = integer::floor_div(a.base, by)}, rest{.base = integer::mod(a.base, by)};
  for (const auto& [name, factor] : a.factors) {
    if (factor % by == 0)
      whole.factors.emplace(name, factor / by);
    else
      rest.factors.emplace(name, factor);
  }
  if (!range(rest, extents).within(by)) return std::nullopt;
  return remainder ? rest : whole;
}

}  // namespace

std::int64_t Affine::factor(const std::string& axis) const {
  const auto it = factors.find(axis);
  return it == factors.end() ? 0 : it->second;
}

Range range(const Affine& affine, const AxisExtents& extents) {
  Range result{affine.base, affine.base};
  for (const auto& [name, factor] : affine.factors)
    result = result + Range{0, extents.find(name)->second - 1} * Range{factor, factor};
  return result;
}

std::optional<Affine> affine(const Scalar& scalar, const AxisExtents& extents, const Sizes& sizes) {
  if (const auto number = tile::number_of_size(scalar, sizes)) return Affine{*number, {}};
  if (const auto* index = std::get_if<node::Index>(&scalar.node())) {
    if (!extents.contains(index->axis)) return std::nullopt;
    return Affine{0, {{index->axis, 1}}};
  }
  const auto* apply = std::get_if<node::Apply>(&scalar.node());
  if (apply == nullptr) return std::nullopt;
  std::vector<Affine> args;
  for (const Scalar& arg : apply->args) {
    auto part = affine(arg, extents, sizes);
    if (!part) return std::nullopt;
    args.push_back(*std::move(part));
  }
  switch (apply->fn) {
    case Fn::Neg: return sum({}, args[0], -1);
    case Fn::Add: return sum(args[0], args[1], 1);
    case Fn::Sub: return sum(args[0], args[1], -1);
    case Fn::Mul:
      if (args[0].factors.empty()) std::swap(args[0], args[1]);
      if (!args[1].factors.empty()) return std::nullopt;
      return sum({}, args[0], args[1].base);
    case Fn::FloorDiv:
    case Fn::Mod:
      if (!args[1].factors.empty() || args[1].base < 1) return std::nullopt;
      return divided(args[0], args[1].base, apply->fn == Fn::Mod, extents);
    default: return std::nullopt;
  }
}

}  // namespace tessera::lower
