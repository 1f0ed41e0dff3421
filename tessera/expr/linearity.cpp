#include "tessera/expr/linearity.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "tessera/support/check.h"

namespace tessera {
namespace {

using Names = std::set<std::string>;

/// Monomial: a product of an element of each of `factors` and any function of `opaque`.
struct Monomial {
  std::multiset<std::string> factors = {};
  Names opaque = {};
  bool infinite = false;  // and of a constant that is no real number
  auto operator<=>(const Monomial&) const = default;
};

/// Expression as a sum of monomials without coefficients. The empty sum is zero.
using Sum = std::set<Monomial>;

// Limits of expansion; larger expressions are not analyzed.
constexpr std::size_t kMostMonomials = 256, kMostFactors = 16, kMostGroups = 64,
                      kMostSteps = 10'000;

Names names_in(const Sum& sum) {
  Names names;
  for (const Monomial& monomial : sum) {
    names.insert(monomial.factors.begin(), monomial.factors.end());
    names.insert(monomial.opaque.begin(), monomial.opaque.end());
  }
  return names;
}

/// Unknown function of these operands.
Sum opaque(Names names) {
  return {{.opaque = std::move(names)}};
}

Sum depending(const Sum& sum, const Names& names) {
  if (names.empty()) return sum;
  Sum result;
  for (Monomial monomial : sum) {
    monomial.opaque.insert(names.begin(), names.end());
    result.insert(std::move(monomial));
  }
  return result;
}

Sum operator+(Sum a, const Sum& b) {
  a.insert(b.begin(), b.end());
  return a;
}

Sum operator*(const Sum& a, const Sum& b) {
  Sum result;
  for (const Monomial& x : a) {
    for (Monomial product : b) {
      product.factors.insert(x.factors.begin(), x.factors.end());
      product.opaque.insert(x.opaque.begin(), x.opaque.end());
      product.infinite |= x.infinite;
      result.insert(std::move(product));
      if (result.size() > kMostMonomials) return result;
    }
  }
  return result;
}

bool is_partial(const Scalar& scalar, node::Partial::Side side, int component) {
  const auto* partial = std::get_if<node::Partial>(&scalar.node());
  return partial != nullptr && partial->side == side && partial->component == component;
}

/// Whether a component of a fold is the sum of what is lifted.
bool adds_up(const Fold& fold, int component) {
  const auto* apply =
      std::get_if<node::Apply>(&fold.combine[static_cast<std::size_t>(component)].node());
  if (apply == nullptr || apply->fn != Fn::Add) return false;
  using enum node::Partial::Side;
  return (is_partial(apply->args[0], Left, component) &&
          is_partial(apply->args[1], Right, component)) ||
         (is_partial(apply->args[0], Right, component) &&
          is_partial(apply->args[1], Left, component));
}

class Expansion {
 public:
  const Sum& of(const Scalar& scalar) {
    if (const auto it = memo_.find(scalar.id()); it != memo_.end()) return it->second;
    Sum sum = why_.empty() ? expand(scalar) : Sum{};
    const bool large =
        sum.size() > kMostMonomials || std::ranges::any_of(sum, [](const Monomial& monomial) {
          return monomial.factors.size() > kMostFactors;
        });
    if (large) {
      why_ = "it multiplies out to too many products";
      sum = {};
    }
    return memo_[scalar.id()] = std::move(sum);
  }

  /// Value after conversion to the dtype of a tensor.
  Sum stored(const Scalar& scalar, DType dtype) {
    if (scalar.sort() == sort_of(dtype) && scalar.sort() != Sort::Bool) return of(scalar);
    return converted(scalar);
  }

  Names names(const Scalar& scalar) { return names_in(of(scalar)); }
  template <class... Lists>
  Names names(const Lists&... lists) {
    Names result;
    const auto add = [&](const std::vector<Scalar>& list) {
      for (const Scalar& scalar : list) result.merge(names(scalar));
    };
    (add(lists), ...);
    return result;
  }

  const std::string& why() const { return why_; }

 private:
  static Sum one() { return opaque({}); }

  /// Value after conversion to another sort; constants stay constants.
  Sum converted(const Scalar& scalar) {
    Names used = names(scalar);
    return used.empty() ? of(scalar) : opaque(std::move(used));
  }

  Sum expand(const Scalar& scalar) {
    return std::visit([&](const auto& n) { return expand(n, scalar.sort()); }, scalar.node());
  }

  Sum expand(const node::Constant& n, Sort) {
    if (n.sort == Sort::Value && !std::isfinite(n.number)) return {{.infinite = true}};
    const bool zero = n.sort == Sort::Value ? n.number == 0 : n.integer == 0;
    return zero ? Sum{} : one();
  }
  Sum expand(const node::Index&, Sort) { return one(); }
  Sum expand(const node::Size&, Sort) { return one(); }
  Sum expand(const node::Partial&, Sort) { return one(); }

  Sum expand(const node::Read& n, Sort) {
    const Names at = names(n.at);
    // The truth value of a bool is not a number.
    Sum sum = n.sort == Sort::Bool ? opaque({n.operand}) : Sum{{.factors = {n.operand}}};
    if (n.otherwise != nullptr) sum = sum + of(*n.otherwise);
    return depending(sum, at);
  }

  Sum expand(const node::Cast& n, Sort) {
    if (is_float(n.to) && !is_small(n.to) && n.arg->sort() == Sort::Value) return of(*n.arg);
    return converted(*n.arg);
  }

  Sum expand(const node::Apply& n, Sort sort) {
    switch (n.fn) {
      case Fn::Neg: return of(n.args[0]);
      case Fn::Add:
      case Fn::Sub:
      case Fn::Mul:
      case Fn::Div: {
        // Where sorts meet, the other one turns into a value, which is a cast.
        const auto arg = [&](std::size_t i) {
          return n.args[i].sort() == sort ? of(n.args[i]) : converted(n.args[i]);
        };
        if (n.fn == Fn::Mul) return arg(0) * arg(1);
        if (n.fn != Fn::Div) return arg(0) + arg(1);
        if (sort == Sort::Value) return depending(arg(0), names(n.args[1]));
        break;
      }
      case Fn::Select:
        if (n.args[1].sort() != n.args[2].sort() || sort == Sort::Bool) break;
        return depending(of(n.args[1]) + of(n.args[2]), names(n.args[0]));
      case Fn::Abs:
      case Fn::Exp:
      case Fn::Log:
      case Fn::Sqrt:
      case Fn::Sin:
      case Fn::Cos:
      case Fn::Atan:
      case Fn::Tanh:
      case Fn::Erf:
      case Fn::Floor:
      case Fn::Round:
      case Fn::Not:
      case Fn::FloorDiv:
      case Fn::Mod:
      case Fn::Pow:
      case Fn::Max:
      case Fn::Min:
      case Fn::Equal:
      case Fn::Less:
      case Fn::LessEqual:
      case Fn::And:
      case Fn::Or:
      case Fn::Xor:
      case Fn::ShiftLeft:
      case Fn::ShiftRight: break;
    }
    return opaque(names(n.args));
  }

  Sum expand(const node::Component& n, Sort) {
    const Fold& fold = *n.fold;
    Names extents;
    for (const Bound& bound : fold.bounds) extents.merge(names(bound.extent));
    if (adds_up(fold, n.index)) {
      const auto which = static_cast<std::size_t>(n.index);
      return depending(of(fold.init[which]) + of(fold.lift[which]), extents);
    }
    extents.merge(names(fold.init, fold.lift, fold.combine));
    return opaque(std::move(extents));
  }

  std::unordered_map<const void*, Sum> memo_;
  std::string why_;
};

Sum expand(Expansion& expansion, const Output& output) {
  Sum value = expansion.stored(output.value, output.dtype);
  if (!output.forward) return value;
  const ScatterWrite& forward = *output.forward;
  const Sum update = expansion.stored(forward.value, output.dtype);
  Names used = expansion.names(forward.target);
  // Which writes collide depends on the targets only.
  if (!forward.combine || forward.combine == Fn::Add || forward.combine == Fn::Sub)
    return depending(value + update, used);
  used.merge(names_in(value + update));
  return opaque(std::move(used));
}

/// Enumeration of all maximal sets of names without conflicts (Bron and Kerbosch, Algorithm 457,
/// with a pivot, over the graph of names that agree).
class Agreement {
 public:
  explicit Agreement(std::map<std::string, Names> conflicts) : conflicts_(std::move(conflicts)) {
    Names all;
    for (const auto& [name, others] : conflicts_) all.insert(name);
    if (!all.empty()) extend({}, std::move(all), {});
    std::ranges::sort(found_);
  }

  const std::vector<Names>& found() const { return found_; }
  bool complete() const { return found_.size() <= kMostGroups && steps_ <= kMostSteps; }

 private:
  Names agreeing(const Names& names, const std::string& with) const {
    Names result;
    for (const std::string& name : names)
      if (name != with && !conflicts_.at(with).contains(name)) result.insert(name);
    return result;
  }

  void extend(const Names& chosen, Names open, Names done) {
    ++steps_;
    if (!complete()) return;
    if (open.empty()) {
      if (done.empty()) found_.push_back(chosen);
      return;
    }
    // One of the pivot and its conflicts is in every largest set.
    const std::string pivot = *open.begin();
    Names branches = conflicts_.at(pivot);
    branches.insert(pivot);
    for (const std::string& name : branches) {
      if (!open.contains(name)) continue;
      Names longer = chosen;
      longer.insert(name);
      extend(longer, agreeing(open, name), agreeing(done, name));
      open.erase(name);
      done.insert(name);
    }
  }

  std::map<std::string, Names> conflicts_;
  std::vector<Names> found_;
  std::size_t steps_ = 0;
};

}  // namespace

bool Linearity::linear_in(const Group& group) const {
  return std::ranges::count(groups, group) != 0;
}

bool Linearity::affine_in(const Group& group) const {
  return std::ranges::any_of(
      affine, [&](const Group& whole) { return std::ranges::includes(whole, group); });
}

Linearity linearity(const Definition& definition, std::size_t output) {
  TESSERA_CHECK(output < definition.outputs.size(), "there is no output {}", output);
  Expansion expansion;
  const Sum sum = expand(expansion, definition.outputs[output]);
  if (!expansion.why().empty()) return {.why = expansion.why()};
  if (std::ranges::any_of(sum, &Monomial::infinite)) return {.why = "an infinity is in it"};

  Names nonlinear;
  std::map<std::string, Names> conflicts;
  for (const Monomial& monomial : sum) {
    nonlinear.insert(monomial.opaque.begin(), monomial.opaque.end());
    for (const std::string& name : monomial.factors) {
      if (monomial.factors.count(name) > 1) nonlinear.insert(name);
      conflicts[name].insert(monomial.factors.begin(), monomial.factors.end());
    }
  }
  for (auto& [name, others] : conflicts) others.erase(name);
  for (const std::string& name : nonlinear) {
    conflicts.erase(name);
    for (auto& [other, others] : conflicts) others.erase(name);
  }
  if (conflicts.empty())
    return {.why = nonlinear.empty() ? "it does not depend on an operand"
                                     : *nonlinear.begin() + " is not used linearly"};

  const Agreement agreement(std::move(conflicts));
  if (!agreement.complete()) return {.why = "there are too many groups"};
  Linearity result{.affine = agreement.found()};
  // In an affine group no product has two of its names; in a linear one every product has one.
  for (const Names& group : agreement.found()) {
    const bool in_all = std::ranges::all_of(sum, [&](const Monomial& monomial) {
      return std::ranges::any_of(monomial.factors,
                                 [&](const std::string& name) { return group.contains(name); });
    });
    if (in_all) result.groups.push_back(group);
  }
  return result;
}

}  // namespace tessera
