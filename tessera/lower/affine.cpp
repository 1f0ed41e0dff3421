#include "tessera/lower/affine.h"

#include <utility>
#include <vector>

#include "tessera/expr/number.h"
#include "tessera/tile/schedule.h"

namespace tessera::lower {
namespace {

/// Quotient or remainder of an affine form by a constant, if the terms that the constant does not
/// divide stay below it.
std::optional<AffineIndex> divided(const AffineIndex& a, std::int64_t by, bool remainder,
                                   const AxisExtents& extents) {
  AffineIndex whole{.base = integer::floor_div(a.base, by)}, rest{.base = integer::mod(a.base, by)};
  for (const auto& [name, factor] : a.terms) {
    if (factor % by == 0)
      whole.terms.push_back({name, factor / by});
    else
      rest.terms.push_back({name, factor});
  }
  if (!range(rest, extents).within(by)) return std::nullopt;
  return remainder ? rest : whole;
}

}  // namespace

Range range(const AffineIndex& index, const AxisExtents& extents) {
  Range result{index.base, index.base};
  for (const auto& [name, factor] : index.terms)
    result = result + Range{0, extents.find(name)->second - 1} * Range{factor, factor};
  return result;
}

std::optional<AffineIndex> affine(const Scalar& scalar, const AxisExtents& extents,
                                  const Sizes& sizes) {
  if (const auto number = tile::number_of_size(scalar, sizes))
    return AffineIndex::constant(*number);
  if (const auto* index = std::get_if<node::Index>(&scalar.node())) {
    if (!extents.contains(index->axis)) return std::nullopt;
    return AffineIndex::of(index->axis);
  }
  const auto* apply = std::get_if<node::Apply>(&scalar.node());
  if (apply == nullptr) return std::nullopt;
  std::vector<AffineIndex> args;
  for (const Scalar& arg : apply->args) {
    auto part = affine(arg, extents, sizes);
    if (!part) return std::nullopt;
    args.push_back(*std::move(part));
  }
  switch (apply->fn) {
    case Fn::Neg: return args[0].times(-1);
    case Fn::Add: return args[0].plus(args[1]);
    case Fn::Sub: return args[0].plus(args[1], -1);
    case Fn::Mul:
      if (args[0].is_constant()) std::swap(args[0], args[1]);
      if (!args[1].is_constant()) return std::nullopt;
      return args[0].times(args[1].base);
    case Fn::FloorDiv:
    case Fn::Mod:
      if (!args[1].is_constant() || args[1].base < 1) return std::nullopt;
      return divided(args[0], args[1].base, apply->fn == Fn::Mod, extents);
    default: return std::nullopt;
  }
}

}  // namespace tessera::lower
