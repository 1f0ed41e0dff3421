#include <algorithm>
#include <set>

#include "tessera/certify/conditions.h"
#include "tessera/expr/element.h"
#include "tessera/expr/induction.h"

namespace tessera::certify {

using algebra::Factor;
using algebra::Sum;
using algebra::Term;

bool holds(const Dim& e, const Reason& reason, const std::vector<Dim>& premises) {
  const Dim& scale = reason.scale;
  if (scale.least().value_or(-1) < 0) return false;
  Dim rest = scale * e + scale - 1;
  for (const auto& [premise, multiplier] : reason.multiples) {
    if (premise >= premises.size() || multiplier.least().value_or(-1) < 0) return false;
    rest = rest - multiplier * premises[premise];
  }
  return rest.least().value_or(-1) >= 0;
}

void forget(std::vector<Dim>& premises, const std::string& name) {
  for (Dim& premise : premises)
    if (premise.contains(name)) premise = 0;
}

Term without_factor(Term term, std::size_t factor) {
  term.factors.erase(term.factors.begin() + static_cast<std::ptrdiff_t>(factor));
  return term;
}

/// Inference of a step at one term: checks its conditions, and returns the sum that replaces the
/// term. `Kind` specifies each inference.
class State::Inference {
 public:
  Inference(State& state, const Step& step, const Site& site)
      : state_(state), step_(step), site_(site), term_(*site.term) {}

  Expected<Sum> result() {
    // In a maximum nothing is counted; in a fold order counts.
    CERTIFY(site_.in != Site::In::Fold || step_.kind == Kind::Drop || step_.kind == Kind::Settle,
            "{} is not for folds", to_string(step_.kind));
    switch (step_.kind) {
      case Kind::Unfold: return unfold();
      case Kind::Split: return split();
      case Kind::Void: return remove_void();
      case Kind::Drop: return drop();
      case Kind::Tighten: return tighten();
      case Kind::Solve: return solve();
      case Kind::Pin: return pin();
      case Kind::Shift: return shift();
      case Kind::Reverse: return reverse();
      case Kind::Divide: return divide();
      case Kind::Settle:
      case Kind::Quotient: return replace_operation();
      case Kind::Count: return count();
      case Kind::Attain: return attain();
      case Kind::Induct: return induct();
      case Kind::Cases:
      case Kind::Signs: break;
    }
    return wrong("there is no such inference");
  }

 private:
  bool shown(const Dim& e, std::size_t reason) const {
    return reason < step_.reasons.size() && holds(e, step_.reasons[reason], site_.premises);
  }
  /// The bound variable that the step names; `dims[0]` may not depend on it.
  std::optional<std::string> bound() const {
    if (step_.item >= term_.bound.size()) return std::nullopt;
    return term_.bound[step_.item];
  }
  Term unbound(const std::string& name) const {
    Term result = term_;
    std::erase(result.bound, name);
    return result;
  }

  /// Replaces a read of a computed tensor by its definition.
  Expected<Sum> unfold() {
    CERTIFY(step_.item < term_.factors.size(), "there is no factor {}", step_.item);
    const Factor& factor = term_.factors[step_.item];
    CERTIFY(factor.kind == Factor::Kind::Read && state_.is_computed(factor.name),
            "{} is not computed", factor.name);
    return product(state_.names_, sum_of(without_factor(term_, step_.item)),
                   power(state_.names_, state_.element(factor.name, factor.at), factor.exponent));
  }
  /// Two cases: the condition holds, or it does not.
  Expected<Sum> split() {
    CERTIFY(step_.dims.size() == 1, "one condition is needed");
    Sum both{{term_, term_}};
    both.terms[0].guards.push_back(step_.dims[0]);
    both.terms[1].guards.push_back(-step_.dims[0] - 1);
    return both;
  }
  /// A term whose guards contradict each other is 0.
  Expected<Sum> remove_void() {
    CERTIFY(shown(-1, 0), "the guards do not contradict each other");
    return Sum{};
  }
  /// A guard that follows from the others.
  Expected<Sum> drop() {
    CERTIFY(step_.item < term_.guards.size(), "there is no guard {}", step_.item);
    CERTIFY(step_.reasons.size() == 1 &&
                std::ranges::none_of(
                    step_.reasons[0].multiples,
                    [&](const auto& use) { return use.first == site_.own + step_.item; }) &&
                shown(term_.guards[step_.item], 0),
            "the guard does not follow");
    Sum result = algebra::sum_of(term_);
    result.terms[0].guards.erase(result.terms[0].guards.begin() +
                                 static_cast<std::ptrdiff_t>(step_.item));
    return result;
  }
  /// A guard that is equivalent under the others.
  Expected<Sum> tighten() {
    CERTIFY(step_.item < term_.guards.size() && step_.dims.size() == 1, "two guards are needed");
    CERTIFY(shown(step_.dims[0], 0), "the new guard does not follow");
    std::vector<Dim> others = site_.premises;
    others[site_.own + step_.item] = step_.dims[0];
    CERTIFY(step_.reasons.size() == 2 && holds(term_.guards[step_.item], step_.reasons[1], others),
            "the old guard does not follow");
    Sum result = algebra::sum_of(term_);
    result.terms[0].guards[step_.item] = step_.dims[0];
    return result;
  }
  /// A bound variable that has one value.
  Expected<Sum> solve() {
    const auto name = bound();
    CERTIFY(name && step_.dims.size() == 1 && !step_.dims[0].contains(*name),
            "a bound variable and its value are needed");
    const Dim difference = Dim::symbol(*name) - step_.dims[0];
    Term rest = unbound(*name);
    for (const Dim& guard : {difference, -difference}) {
      if (guard.least().value_or(-1) >= 0) continue;
      const auto here = std::ranges::find(rest.guards, guard);
      CERTIFY(here != rest.guards.end(), "{} is not pinned down", *name);
      rest.guards.erase(here);
    }
    rest.guards.push_back(step_.dims[0]);  // as the variable was, it is not negative
    return substituted(state_.names_, rest, {{*name, step_.dims[0]}});
  }
  /// A free variable that has one value.
  Expected<Sum> pin() {
    CERTIFY(step_.dims.size() == 2 && step_.dims[0].as_symbol(),
            "a variable and its value are needed");
    const std::string name(*step_.dims[0].as_symbol());
    CERTIFY(!step_.dims[1].contains(name), "{} is no value for itself", name);
    CERTIFY(std::ranges::find(term_.bound, name) == term_.bound.end(), "{} is bound", name);
    const Dim difference = step_.dims[0] - step_.dims[1];
    CERTIFY(shown(difference, 0) && shown(-difference, 1), "{} may have other values", name);
    Sum result = substituted(state_.names_, term_, {{name, step_.dims[1]}});
    return product(state_.names_, result, algebra::indicator({difference, -difference}));
  }
  /// A bound variable that has a least value.
  Expected<Sum> shift() {
    const auto name = bound();
    CERTIFY(name && step_.dims.size() == 1 && !step_.dims[0].contains(*name),
            "a bound variable and its least value are needed");
    CERTIFY(shown(Dim::symbol(*name) - step_.dims[0], 0), "{} may be less", *name);
    Term moved = term_;
    moved.guards.push_back(Dim::symbol(*name));  // it was not negative
    return substituted(state_.names_, moved, {{*name, Dim::symbol(*name) + step_.dims[0]}});
  }
  /// A bound variable that is counted from its largest value.
  Expected<Sum> reverse() {
    const auto name = bound();
    CERTIFY(name && step_.dims.size() == 1 && !step_.dims[0].contains(*name),
            "a bound variable and its largest value are needed");
    const Dim left = step_.dims[0] - Dim::symbol(*name);
    CERTIFY(std::ranges::find(term_.guards, left) != term_.guards.end(), "{} may be larger", *name);
    Term turned = term_;
    turned.guards.push_back(Dim::symbol(*name));  // it was not negative
    return substituted(state_.names_, turned, {{*name, left}});
  }
  /// A bound variable as quotient and remainder by a size.
  Expected<Sum> divide() {
    const auto name = bound();
    CERTIFY(name && step_.dims.size() == 1 && !step_.dims[0].contains(*name),
            "a bound variable and a size are needed");
    CERTIFY(shown(step_.dims[0] - 1, 0), "the size is not known to be at least 1");
    Term parts = unbound(*name);
    const std::string multiple = state_.names_.fresh(), rest = state_.names_.fresh();
    parts.bound.insert(parts.bound.end(), {multiple, rest});
    parts.guards.push_back(step_.dims[0] - 1 - Dim::symbol(rest));
    return substituted(state_.names_, parts,
                       {{*name, Dim::symbol(multiple) * step_.dims[0] + Dim::symbol(rest)}});
  }
  /// An operation on sizes (minimum, maximum, quotient, remainder) by its value, or by a new
  /// variable.
  Expected<Sum> replace_operation() {
    CERTIFY(!step_.dims.empty(), "an operation is needed");
    const auto operations = step_.dims[0].operations();
    CERTIFY(!operations.empty() && operations[0].whole == step_.dims[0], "{} is no operation",
            step_.dims[0].to_string());
    const auto& [op, whole, a, b] = operations[0];
    const bool division = op == Dim::Op::FloorDiv || op == Dim::Op::Mod;
    // A premise that mentions the rewritten operation cannot show its value.
    for (const Reason& reason : step_.reasons)
      for (const auto& [premise, multiplier] : reason.multiples)
        CERTIFY(premise < site_.premises.size() &&
                    site_.premises[premise].replaced(whole, 0) == site_.premises[premise],
                "a premise speaks of {}", whole.to_string());
    if (!division) {
      CERTIFY(step_.kind == Kind::Settle && step_.dims.size() == 2 &&
                  (step_.dims[1] == a || step_.dims[1] == b),
              "one of both sides is needed");
      const Dim difference = step_.dims[1] == a ? b - a : a - b;
      CERTIFY(shown(op == Dim::Op::Min ? difference : -difference, 0), "the order is not known");
      return replaced(state_.names_, term_, whole, step_.dims[1]);
    }
    CERTIFY(shown(b - 1, 0), "the divisor is not known to be at least 1");
    Term result = term_;
    Dim quotient;
    if (step_.kind == Kind::Settle) {
      CERTIFY(step_.dims.size() == 2, "a value is needed");
      quotient = step_.dims[1];
      CERTIFY(shown(a - b * quotient, 1) && shown(b * quotient + b - 1 - a, 2),
              "{} is not known to be the quotient", quotient.to_string());
    } else {
      CERTIFY(shown(a, 1), "what is divided may be negative");
      quotient = Dim::symbol(state_.names_.fresh());
      result.bound.push_back(std::string(*quotient.as_symbol()));
    }
    Sum made =
        replaced(state_.names_, result, whole, op == Dim::Op::Mod ? a - b * quotient : quotient);
    if (step_.kind == Kind::Quotient)
      made = product(state_.names_, made,
                     algebra::indicator({a - b * quotient, b * quotient + b - 1 - a}));
    return made;
  }
  /// A bound variable that nothing depends on: the number of its values.
  Expected<Sum> count() {
    const auto name = bound();
    CERTIFY(name.has_value(), "a bound variable is needed");
    const Dim variable = Dim::symbol(*name);
    Term rest = unbound(*name);
    std::optional<Dim> last;
    for (const Dim& guard : term_.guards) {
      if (!guard.contains(*name)) continue;
      const Dim e = guard + variable;
      CERTIFY(!last && !e.contains(*name), "{} has several limits", *name);
      last = e;
      std::erase(rest.guards, guard);
    }
    CERTIFY(last && !algebra::contains(rest, *name), "{} is spoken of", *name);
    // Existence of a value does not follow from premises about its values.
    std::vector<Dim> others = site_.premises;
    forget(others, *name);
    const Dim needed = site_.in == Site::In::Most ? *last : *last + 1;
    CERTIFY(step_.reasons.size() == 1 && holds(needed, step_.reasons[0], others),
            "{} may have no value", *name);
    if (site_.in == Site::In::Most) return sum_of(std::move(rest));
    return product(state_.names_, sum_of(std::move(rest)), algebra::number(*last + 1));
  }
  /// A maximum over variables that its value does not depend on.
  Expected<Sum> attain() {
    CERTIFY(site_.in == Site::In::Most && step_.dims.size() == term_.bound.size(),
            "a maximum and values of its variables are needed");
    algebra::Replacement values;
    for (std::size_t i = 0; i < term_.bound.size(); ++i) {
      values.emplace(term_.bound[i], step_.dims[i]);
      for (const std::string& name : term_.bound)
        CERTIFY(!step_.dims[i].contains(name) && !algebra::contains(term_.factors[0], name),
                "{} is spoken of", name);
    }
    // Whatever holds outside, the values are natural and satisfy the guards on the variables.
    const std::vector<Dim> outside(site_.premises.begin(),
                                   site_.premises.begin() + static_cast<std::ptrdiff_t>(site_.own));
    Term result = term_;
    result.bound.clear();
    result.guards.clear();
    std::vector<Dim> needed = step_.dims;
    for (const Dim& guard : term_.guards) {
      const Dim at = algebra::substituted(guard, values);
      (at == guard ? result.guards : needed).push_back(at);
    }
    CERTIFY(step_.reasons.size() == needed.size(), "each condition needs a reason");
    for (std::size_t i = 0; i < needed.size(); ++i)
      CERTIFY(holds(needed[i], step_.reasons[i], outside), "a value is {}",
              i < step_.dims.size() ? "negative" : "out of range");
    return sum_of(std::move(result));
  }
  /// A fold by its closed form.
  Expected<Sum> induct() {
    TESSERA_TRY(Induction induction, state_.induction(site_, step_.item));
    CERTIFY(shown(induction.last, 0), "the fold may take in nothing");
    TESSERA_TRY_DONE(State::proved(induction.obligations, step_));
    return product(state_.names_, sum_of(without_factor(term_, step_.item)),
                   power(state_.names_, opened(state_.names_, induction.closed_form),
                         term_.factors[step_.item].exponent));
  }

  State& state_;
  const Step& step_;
  const Site& site_;
  const Term& term_;
};

Expected<Sum> State::changed(const Step& step, const Site& site) {
  return Inference(*this, step, site).result();
}

}  // namespace tessera::certify
