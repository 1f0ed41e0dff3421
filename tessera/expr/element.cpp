#include "tessera/expr/element.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/expr/named_real.h"

namespace tessera::algebra {
namespace {

using Kind = Factor::Kind;

class Reader {
 public:
  Reader(Names& names, const ElementBindings& meaning) : names_(names), meaning_(meaning) {}

  Sum read(const Scalar& scalar) {
    if (++depth_ > kDeepest) return nothing();
    Sum result = std::visit([&](const auto& node) { return of(node, scalar); }, scalar.node());
    --depth_;
    return result;
  }

  /// An index or a size as a Dim, if it does not depend on data.
  std::optional<Dim> dim(const Scalar& scalar) {
    if (const auto* constant = std::get_if<node::Constant>(&scalar.node()))
      return constant->sort == Sort::Integer ? std::optional<Dim>(constant->integer) : std::nullopt;
    if (const auto* index = std::get_if<node::Index>(&scalar.node())) {
      const auto here = meaning_.axes.find(index->axis);
      return here == meaning_.axes.end() ? std::nullopt : std::optional(here->second);
    }
    if (const auto* size = std::get_if<node::Size>(&scalar.node()))
      return resolved(size->dim, meaning_.sizes);
    const auto* apply = std::get_if<node::Apply>(&scalar.node());
    if (apply == nullptr || scalar.sort() != Sort::Integer) return std::nullopt;
    std::vector<Dim> args;
    for (const Scalar& arg : apply->args) {
      if (arg.sort() != Sort::Integer) return std::nullopt;
      const auto value = dim(arg);
      if (!value) return std::nullopt;
      args.push_back(*value);
    }
    switch (apply->fn) {
      case Fn::Add: return args[0] + args[1];
      case Fn::Sub: return args[0] - args[1];
      case Fn::Mul: return args[0] * args[1];
      case Fn::Neg: return -args[0];
      case Fn::FloorDiv: return floor_div(args[0], args[1]);
      case Fn::Mod: return mod(args[0], args[1]);
      case Fn::Min: return min(args[0], args[1]);
      case Fn::Max: return max(args[0], args[1]);
      case Fn::Abs: return max(args[0], -args[0]);
      default: return std::nullopt;
    }
  }

 private:
  static constexpr int kDeepest = 500;

  static Sum nothing() { return constant(Rational::undefined()); }

  Sum times(const Sum& a, const Sum& b) { return product(names_, a, b); }

  Sum of(const node::Constant& node, const Scalar&) {
    if (node.sort == Sort::Unsigned && node.integer < 0) return nothing();
    if (node.sort != Sort::Value) return constant(node.integer);
    return constant_of_file(names_, node.number, meaning_.named_reals);
  }

  Sum of(const node::Index&, const Scalar& scalar) {
    const auto at = dim(scalar);
    return at ? number(*at) : nothing();
  }
  Sum of(const node::Size&, const Scalar& scalar) { return of(node::Index{}, scalar); }

  Sum of(const node::Partial& node, const Scalar&) {
    return factor({.kind = Kind::Read,
                   .name = fmt::format("%{}{}", node.side == node::Partial::Side::Left ? "L" : "R",
                                       node.component)});
  }

  /// An access and the guards under which it is in range, if it has a value for out of range.
  struct GuardedAccess {
    std::vector<Dim> range;
    Sum value;
  };
  std::optional<GuardedAccess> inside(const node::Read& node) {
    const ElementBindings::Tensor tensor = meaning_.operand(node.operand);
    if (tensor.shape.size() != node.at.size()) return std::nullopt;
    std::vector<Dim> range, place;
    std::optional<Sum> chosen;  // where an index is data
    for (std::size_t axis = 0; axis < node.at.size(); ++axis) {
      if (const auto at = dim(node.at[axis])) {
        place.push_back(*at);
        if (node.otherwise == nullptr) continue;
        const Dim last = tensor.shape[axis] - 1;
        if (at->least().value_or(-1) < 0) range.push_back(*at);
        if ((last - *at).least().value_or(-1) < 0) range.push_back(last - *at);
        continue;
      }
      // x[d] for data d is the sum over k of x[k] where k = d.
      const std::string k = names_.fresh();
      Sum here = sum_of({.bound = {k}, .guards = {tensor.shape[axis] - 1 - Dim::symbol(k)}});
      const Sum data = read(node.at[axis]);
      here = times(here, apply(names_, Fn::Equal, {number(Dim::symbol(k)), data}));
      chosen = times(chosen.value_or(constant(1)), here);
      place.push_back(Dim::symbol(k));
      if (node.otherwise != nullptr && !is_zero(*node.otherwise)) return std::nullopt;
    }
    Sum value = tensor.uniform ? constant_of_file(names_, *tensor.uniform, meaning_.named_reals)
                               : factor(element_of(tensor, std::move(place)));
    return GuardedAccess{std::move(range), chosen ? times(*chosen, value) : std::move(value)};
  }

  Sum of(const node::Read& node, const Scalar&) {
    const std::optional<GuardedAccess> inside = this->inside(node);
    if (!inside) return nothing();
    if (node.otherwise == nullptr) return inside->value;
    Sum result = times(indicator(inside->range), inside->value);
    if (is_zero(*node.otherwise)) return result;
    const Sum outside = read(*node.otherwise);
    return add(std::move(result), times(complement(inside->range), outside));
  }

  /// An element less what stands for it out of range: their difference in range, zero elsewhere.
  std::optional<Sum> shifted_read(const Scalar& element, const Scalar& by) {
    const auto* node = std::get_if<node::Read>(&element.node());
    if (node == nullptr || node->otherwise == nullptr || is_zero(*node->otherwise))
      return std::nullopt;
    const std::optional<GuardedAccess> inside = this->inside(*node);
    if (!inside) return std::nullopt;
    const Sum shift = read(by);
    if (!same(closed(shift), closed(read(*node->otherwise)))) return std::nullopt;
    return times(indicator(inside->range), add(inside->value, scaled(shift, -1)));
  }

  /// Operand of a maximum: a range and its value there. Minus infinity among numbers is dropped.
  Term piece_of(Term range, const Scalar& lift, const Rational& sign) {
    if (const auto* node = std::get_if<node::Read>(&lift.node());
        node != nullptr && node->otherwise != nullptr) {
      const auto* outside = std::get_if<node::Constant>(&node->otherwise->node());
      if (outside != nullptr && std::isinf(outside->number) &&
          (outside->number < 0) == (sign.sign() > 0))
        if (const std::optional<GuardedAccess> here = inside(*node)) {
          range.guards.insert(range.guards.end(), here->range.begin(), here->range.end());
          range.factors = group(scaled(here->value, sign)).factors;
          return range;
        }
    }
    range.factors = group(scaled(read(lift), sign)).factors;
    return range;
  }

  /// Indicator of the complement of the guards, as a sum of disjoint parts.
  static Sum complement(const std::vector<Dim>& guards) {
    Sum result;
    std::vector<Dim> before;
    for (const Dim& guard : guards) {
      std::vector<Dim> here = before;
      here.push_back(-guard - 1);
      result = add(std::move(result), indicator(std::move(here)));
      before.push_back(guard);
    }
    return result;
  }

  /// A condition as 0 or 1; `negated` as 1 or 0.
  Sum truth(const Scalar& scalar, bool negated) {
    const auto* apply = std::get_if<node::Apply>(&scalar.node());
    if (apply != nullptr) {
      const auto& args = apply->args;
      switch (apply->fn) {
        case Fn::Not:
          if (scalar.sort() == Sort::Bool) return truth(args[0], !negated);
          break;
        case Fn::And:
        case Fn::Or:
          if (scalar.sort() != Sort::Bool) break;
          // a && b, or a + (1 - a) * b: the two parts exclude each other.
          if ((apply->fn == Fn::And) != negated)
            return times(truth(args[0], negated), truth(args[1], negated));
          return add(truth(args[0], negated),
                     times(truth(args[0], !negated), truth(args[1], negated)));
        case Fn::Less: return ordered(args[0], args[1], true, negated);
        case Fn::LessEqual: return ordered(args[0], args[1], false, negated);
        case Fn::Equal: {
          const auto a = dim(args[0]), b = dim(args[1]);
          if (!a || !b) break;
          if (!negated) return indicator({*a - *b, *b - *a});
          return add(indicator({*a - *b - 1}), indicator({*b - *a - 1}));
        }
        default: break;
      }
    }
    Sum value = read(scalar);
    return negated ? add(constant(1), scaled(std::move(value), -1)) : value;
  }

  Sum ordered(const Scalar& a, const Scalar& b, bool strict, bool negated) {
    if (negated) return ordered(b, a, !strict, false);
    const auto left = dim(a), right = dim(b);
    if (left && right) return indicator({*right - *left - (strict ? 1 : 0)});
    if (strict) return apply(names_, Fn::Less, {read(a), read(b)});
    return add(constant(1), scaled(apply(names_, Fn::Less, {read(b), read(a)}), -1));
  }

  Sum of(const node::Apply& node, const Scalar& scalar) {
    if (scalar.sort() == Sort::Integer)
      if (const auto at = dim(scalar)) return number(*at);
    switch (node.fn) {
      case Fn::Select:
        return add(times(truth(node.args[0], false), read(node.args[1])),
                   times(truth(node.args[0], true), read(node.args[2])));
      case Fn::Not:
      case Fn::And:
      case Fn::Or:
        if (scalar.sort() == Sort::Bool) return truth(scalar, false);
        break;
      case Fn::Less:
      case Fn::LessEqual: return truth(scalar, false);
      case Fn::Equal:
        if (dim(node.args[0]) && dim(node.args[1])) return truth(scalar, false);
        break;
      case Fn::Xor:
        if (scalar.sort() != Sort::Bool) break;
        return add(times(truth(node.args[0], false), truth(node.args[1], true)),
                   times(truth(node.args[0], true), truth(node.args[1], false)));
      case Fn::Sub:
        if (auto shifted = shifted_read(node.args[0], node.args[1])) return *std::move(shifted);
        break;
      default: break;
    }
    std::vector<Sum> args;
    for (const Scalar& arg : node.args) args.push_back(read(arg));
    const bool real = scalar.sort() == Sort::Value || scalar.sort() == Sort::Bool;
    return real ? apply(names_, node.fn, std::move(args))
                : apply_to_integers(names_, node.fn, std::move(args));
  }

  Sum of(const node::Cast& node, const Scalar&) {
    Sum arg = read(*node.arg);
    const Sort from = node.arg->sort(), to = sort_of(node.to);
    if (to == Sort::Text || from == Sort::Text) return nothing();
    if (to == Sort::Bool) {
      if (from == Sort::Bool) return arg;
      return add(constant(1), scaled(apply(names_, Fn::Equal, {std::move(arg), Sum{}}), -1));
    }
    const bool wide = node.to == DType::F32 || node.to == DType::F64 || node.to == DType::I64;
    const bool holds_truth = from == Sort::Bool && node.to != DType::F8E8M0;
    if (holds_truth || (wide && (to == Sort::Value || from == Sort::Integer))) return arg;
    return cast(node.to, std::move(arg));
  }

  Sum of(const node::Component& node, const Scalar&) {
    const Fold& fold = *node.fold;
    Term range;
    ElementBindings inner = meaning_;
    for (const Bound& bound : fold.bounds) {
      const auto extent = dim(bound.extent);
      if (!extent) return nothing();
      range.bound.push_back(names_.fresh());
      const Dim at = Dim::symbol(range.bound.back());
      range.guards.push_back(*extent - 1 - at);
      inner.axes.insert_or_assign(bound.axis, at);
    }
    Reader body(names_, inner);
    body.depth_ = depth_;
    const std::optional<Fn> simple = fold.simple();
    if (simple == Fn::Add)
      return add(times(sum_of(range), body.read(fold.lift[0])), read(fold.init[0]));
    const bool bools = !fold.lift.empty() && fold.lift[0].sort() == Sort::Bool;
    if (simple == Fn::Max || simple == Fn::Min ||
        (bools && (simple == Fn::Or || simple == Fn::And))) {
      const Rational sign = simple == Fn::Max || simple == Fn::Or ? 1 : -1;
      std::vector<Term> pieces;
      // A group that comes in several ranges would be the largest of the ranges, not their sum.
      pieces.push_back(body.piece_of(std::move(range), fold.lift[0], sign));
      pieces.push_back(group(scaled(read(fold.init[0]), sign)));
      return scaled(most(names_, std::move(pieces)), sign);
    }
    // Any other fold stays a fold. For several axes their order is recorded behind the groups,
    // unless it makes no difference.
    for (const Scalar& lift : fold.lift) range.factors.push_back(group(body.read(lift)).factors[0]);
    if (range.bound.size() > 1 && simple != Fn::Mul)
      for (const std::string& name : range.bound)
        range.factors.push_back(group(number(Dim::symbol(name))).factors[0]);
    std::vector<Sum> args{closed({{range}})};
    for (const Scalar& init : fold.init) args.push_back(closed(read(init)));
    for (const Scalar& combine : fold.combine) args.push_back(closed(read(combine)));
    return remade(names_, {.kind = Kind::Fold,
                           .component = node.index,
                           .args = std::make_shared<const std::vector<Sum>>(std::move(args))});
  }

  Names& names_;
  const ElementBindings& meaning_;
  int depth_ = 0;
};

}  // namespace

Sum constant_of_file(Names& names, double value, bool named_reals) {
  if (std::isinf(value)) return scaled(factor({.kind = Kind::Bottom}), value < 0 ? 1 : -1);
  if (named_reals)
    if (auto named = named_real(names, value)) return std::move(named->value);
  return constant(Rational::of(value));
}

Factor element_of(const ElementBindings::Tensor& tensor, std::vector<Dim> at) {
  return {.kind = Kind::Read,
          .name = tensor.name,
          .to = tensor.dtype,
          .truth = tensor.dtype == DType::Bool,
          .at = std::move(at)};
}

Sum read(Names& names, const Scalar& scalar, const ElementBindings& meaning) {
  return Reader(names, meaning).read(scalar);
}

Sum element(Names& names, const Output& output, const std::vector<Dim>& at,
            ElementBindings meaning) {
  if (output.forward || output.axes.size() != at.size()) return constant(Rational::undefined());
  for (std::size_t i = 0; i < at.size(); ++i) {
    // The last part of a merged axis runs fastest.
    Dim rest = at[i];
    const std::vector<Axis>& parts = output.axes[i].parts;
    for (std::size_t k = parts.size(); k-- > 0;) {
      const Dim size = resolved(parts[k].size(), meaning.sizes);
      meaning.axes.insert_or_assign(parts[k].name, k == 0 ? rest : mod(rest, size));
      if (k != 0) rest = floor_div(rest, size);
    }
  }
  return read(names, output.value, meaning);
}

}  // namespace tessera::algebra
