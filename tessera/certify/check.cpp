#include "tessera/certify/check.h"

#include <algorithm>
#include <set>

#include "tessera/expr/element.h"
#include "tessera/expr/induction.h"

namespace tessera::certify {
namespace {

using algebra::Factor;
using algebra::Sum;
using algebra::Term;

Diagnostic wrong(std::string message) {
  return {.id = "certificate-wrong", .message = std::move(message)};
}

#define CERTIFY(condition, ...) \
  if (!(condition)) return wrong(fmt::format(__VA_ARGS__))

/// Whether a reason shows that e >= 0.
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

bool are_equal(const Dim& a, const Dim& b, const std::vector<Dim>& facts) {
  if (a == b) return !a.is_undefined();
  const auto is_fact = [&](const Dim& e) { return std::ranges::find(facts, e) != facts.end(); };
  return is_fact(a - b) && is_fact(b - a);
}

std::vector<Dim> facts_of(const Claim& claim) {
  std::vector<Dim> facts;
  for (const Condition& condition : claim.facts) {
    facts.push_back(condition.right - condition.left);
    if (condition.kind == Condition::Kind::Equal) facts.push_back(condition.left - condition.right);
  }
  // Sizes are at least 1, and so is each factor of one that is a product.
  for (const Input& input : claim.inputs) {
    for (const Dim& size : input.type.shape) {
      if (size.constant()) continue;  // it may be 0
      const auto parts = size.parts();
      std::vector<Dim> positive{size};
      if (parts.size() == 1)
        for (const Dim& factor : parts[0].product.factors())
          if (factor.as_symbol()) positive.push_back(factor);
      for (const Dim& e : positive)
        if (const Dim fact = e - 1;
            fact.least().value_or(-1) < 0 && std::ranges::find(facts, fact) == facts.end())
          facts.push_back(fact);
    }
  }
  return facts;
}

/// What holds of the quotients by numbers in a size.
void add_quotients(const Dim& size, std::vector<Dim>& facts) {
  for (const auto& [op, whole, a, b] : size.operations()) {
    if (op != Dim::Op::FloorDiv || b.constant().value_or(0) < 1) continue;
    for (const Dim& fact : {a - b * whole, b * whole + b - 1 - a})
      if (std::ranges::find(facts, fact) == facts.end()) facts.push_back(fact);
  }
}

/// What speaks of a name says nothing any more; the others keep their numbers.
void forget(std::vector<Dim>& premises, const std::string& name) {
  for (Dim& premise : premises)
    if (premise.contains(name)) premise = 0;
}

/// Whether it is made of what a fold combines, which is another number at every step.
bool is_of_fold(const Factor& factor) {
  if (factor.kind == Factor::Kind::Read && factor.name.starts_with('%')) return true;
  return factor.args != nullptr && std::ranges::any_of(*factor.args, [](const Sum& arg) {
           return std::ranges::any_of(arg.terms, [](const Term& term) {
             return std::ranges::any_of(term.factors, is_of_fold);
           });
         });
}

/// Whether something below every number is a part of it.
bool has_bottom(const Sum& sum) {
  return std::ranges::any_of(sum.terms, [](const Term& term) {
    return std::ranges::any_of(term.factors, [](const Factor& factor) {
      return factor.kind == Factor::Kind::Bottom ||
             (factor.args != nullptr && std::ranges::any_of(*factor.args, has_bottom));
    });
  });
}

Term without_factor(Term term, std::size_t factor) {
  term.factors.erase(term.factors.begin() + static_cast<std::ptrdiff_t>(factor));
  return term;
}

}  // namespace

Expected<State> State::of(const Claim& claim, std::size_t pair) {
  State state;
  state.facts_ = facts_of(claim);
  std::set<std::string> sizes_named;
  for (const Dim& fact : state.facts_) fact.collect_symbols(sizes_named);
  for (const Input& input : claim.inputs)
    for (const Dim& size : input.type.shape) size.collect_symbols(sizes_named);
  for (const std::string& name : sizes_named)
    CERTIFY(!name.starts_with('%') && !name.starts_with('#'), "no size may be called {}", name);
  for (const Input& input : claim.inputs)
    CERTIFY(!input.name.starts_with('%'), "no tensor may be called {}", input.name);
  auto tensors = std::make_shared<Tensors>();
  for (const Input& input : claim.inputs)
    CERTIFY(
        tensors->emplace(input.name, Tensor{.type = input.type, .uniform = input.uniform}).second,
        "{} is given twice", input.name);
  for (const Value& value : claim.values) {
    std::vector<Shape> shapes;
    for (const std::string& operand : value.operands) {
      const auto here = tensors->find(operand);
      CERTIFY(here != tensors->end(), "{} uses {}, which is not known", value.name, operand);
      shapes.push_back(here->second.type.shape);
    }
    const Definition& definition = value.definition;
    CERTIFY(!value.name.starts_with('%'), "no tensor may be called {}", value.name);
    CERTIFY(definition.inputs.size() == shapes.size() && value.output < definition.outputs.size(),
            "{} does not fit its definition", value.name);
    for (std::size_t i = 0; i < shapes.size(); ++i)
      CERTIFY(definition.inputs[i].dtype == tensors->find(value.operands[i])->second.type.dtype,
              "the type of operand {} of {} does not fit", i, value.name);
    const Output& output = definition.outputs[value.output];
    CERTIFY(sort_of(output.dtype) == output.value.sort(), "the type of {} does not fit",
            value.name);
    TESSERA_TRY(Sizes sizes, solve_sizes(definition, shapes));
    for (std::size_t i = 0; i < shapes.size(); ++i)
      for (std::size_t axis = 0; axis < shapes[i].size(); ++axis)
        CERTIFY(are_equal(resolved(definition.inputs[i].shape[axis], sizes), shapes[i][axis],
                          state.facts_),
                "axis {} of operand {} of {} does not fit", axis, i, value.name);
    TESSERA_TRY(const std::vector<TensorType> types, output_types(definition, sizes));
    Tensor tensor{definition, value.output, value.operands, std::move(sizes), types[value.output],
                  {},         true};
    CERTIFY(tensors->emplace(value.name, std::move(tensor)).second, "{} is made twice", value.name);
  }
  CERTIFY(pair < claim.pairs.size(), "there is no pair {}", pair);
  const auto source = tensors->find(claim.pairs[pair].first);
  const auto target = tensors->find(claim.pairs[pair].second);
  CERTIFY(source != tensors->end() && target != tensors->end(), "a pair names no tensor");
  const TensorType &a = source->second.type, &b = target->second.type;
  CERTIFY(a.dtype == b.dtype && a.shape.size() == b.shape.size(), "the types of a pair differ");
  std::vector<Dim> at;
  for (std::size_t axis = 0; axis < a.shape.size(); ++axis) {
    CERTIFY(are_equal(a.shape[axis], b.shape[axis], state.facts_), "the shapes of a pair differ");
    at.push_back(a.shape[axis].is(1) ? Dim(0) : Dim::symbol(fmt::format("%i{}", axis)));
    state.facts_.push_back(a.shape[axis] - 1 - at.back());
    add_quotients(a.shape[axis], state.facts_);
  }
  for (int side : {0, 1}) {
    const auto& [name, tensor] = side == 0 ? *source : *target;
    state.sides_[side] =
        tensor.uniform ? algebra::constant_of_file(state.names_, *tensor.uniform, claim.named_reals)
                       : algebra::factor(algebra::element_of({name, a.shape, a.dtype}, at));
  }
  state.named_reals_ = claim.named_reals;
  state.tensors_ = std::move(tensors);
  return state;
}

bool State::is_computed(const std::string& tensor) const {
  const auto here = tensors_->find(tensor);
  return here != tensors_->end() && here->second.computed;
}

bool State::enter(Site& site, const Sum& sum, std::size_t term) const {
  if (term >= sum.terms.size()) return false;
  site.term = &sum.terms[term];
  // A name that is bound here no longer means what it meant outside.
  for (const std::string& name : site.term->bound) forget(site.premises, name);
  site.own = site.premises.size();
  site.premises.insert(site.premises.end(), site.term->guards.begin(), site.term->guards.end());
  return true;
}

namespace {

const Sum* argument(const Term& term, std::size_t factor, std::size_t arg) {
  if (factor >= term.factors.size() || term.factors[factor].args == nullptr) return nullptr;
  const std::vector<Sum>& args = *term.factors[factor].args;
  return arg < args.size() ? &args[arg] : nullptr;
}

State::Site::In container(const Factor& factor) {
  return factor.kind == Factor::Kind::Most   ? State::Site::In::Most
         : factor.kind == Factor::Kind::Fold ? State::Site::In::Fold
                                             : State::Site::In::Sum;
}

}  // namespace

std::optional<State::Site> State::site(int side, const std::vector<std::size_t>& place) const {
  Site site{.premises = facts_};
  const Sum* sum = &sides_[side];
  for (std::size_t depth = 0; depth < place.size(); depth += 3) {
    if (!enter(site, *sum, place[depth])) return std::nullopt;
    if (depth + 2 >= place.size()) break;
    sum = argument(*site.term, place[depth + 1], place[depth + 2]);
    if (sum == nullptr) return std::nullopt;
    site.in = container(site.term->factors[place[depth + 1]]);
  }
  return site.term == nullptr ? std::nullopt : std::optional(site);
}

Expected<Sum> State::edited(const Sum& sum, const Step& step, std::size_t depth, Site site) {
  CERTIFY(depth < step.place.size() && enter(site, sum, step.place[depth]),
          "there is no such place");
  const Term& term = *site.term;
  Sum replacement;
  if (depth + 1 == step.place.size()) {
    TESSERA_TRY(Sum made, changed(step, site));
    replacement = tidied(std::move(made));
  } else {
    CERTIFY(depth + 2 < step.place.size(), "the place ends in a factor");
    const std::size_t f = step.place[depth + 1], a = step.place[depth + 2];
    const Sum* arg = argument(term, f, a);
    CERTIFY(arg != nullptr, "there is no such place");
    site.in = container(term.factors[f]);
    TESSERA_TRY(Sum inner, edited(*arg, step, depth + 3, site));
    Factor factor = term.factors[f];
    std::vector<Sum> args = *factor.args;
    args[a] = closed(std::move(inner));
    factor.args = std::make_shared<const std::vector<Sum>>(std::move(args));
    if (factor.kind == Factor::Kind::Group) {
      replacement = {{term}};
      replacement.terms[0].factors[f] = std::move(factor);
    } else {
      replacement = product(names_, {{without_factor(term, f)}}, remade(names_, factor));
    }
  }
  Sum result = sum;
  const auto here = result.terms.begin() + static_cast<std::ptrdiff_t>(step.place[depth]);
  result.terms.insert(result.terms.erase(here), replacement.terms.begin(), replacement.terms.end());
  return result;
}

Expected<Done> State::apply(const Step& step) {
  if (step.kind == Kind::Divide && step.place.empty()) return divide_position(step);
  CERTIFY(step.side == 0 || step.side == 1, "there are two sides");
  if (step.kind == Kind::Cases) return end_by_cases(step);
  if (step.kind == Kind::Signs) return end_by_signs(step);
  TESSERA_TRY(sides_[step.side], edited(sides_[step.side], step, 0, {.premises = facts_}));
  CERTIFY(sides_[step.side].terms.size() < 100'000, "the sums grow too large");
  if (step.results.empty()) return Done{};
  const std::vector<std::string> made{sum_text(sides_[step.side])};
  CERTIFY(step.results == made, "{} makes another sum than is stated", to_string(step.kind));
  return Done{};
}

/// A position along an axis of the result is written as a multiple and a rest, on both sides.
Expected<Done> State::divide_position(const Step& step) {
  CERTIFY(step.dims.size() == 2 && step.reasons.size() == 1, "a position and a size are needed");
  const auto position = step.dims[0].as_symbol();
  const Dim& size = step.dims[1];
  CERTIFY(position && position->starts_with("%i"), "a position is needed");
  CERTIFY(!size.contains(*position) && holds(size - 1, step.reasons[0], facts_),
          "the size is not known to be at least 1");
  const Dim multiple = Dim::symbol(std::string(*position) + "a");
  const Dim rest = Dim::symbol(std::string(*position) + "b");
  CERTIFY(std::ranges::any_of(facts_, [&](const Dim& e) { return e.contains(*position); }),
          "{} is no position any more", *position);
  const algebra::Replacement with{{std::string(*position), multiple * size + rest}};
  for (Dim& fact : facts_) fact = algebra::substituted(fact, with);
  facts_.push_back(size - 1 - rest);
  for (Sum& side : sides_) {
    Sum result;
    for (const Term& term : side.terms)
      result = add(std::move(result), substituted(names_, term, with));
    side = std::move(result);
  }
  if (step.results.empty()) return Done{};
  const std::vector<std::string> made{sum_text(sides_[0]), sum_text(sides_[1])};
  CERTIFY(step.results == made, "{} makes other sums than are stated", to_string(step.kind));
  return Done{};
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
    return product(state_.names_, {{without_factor(term_, step_.item)}},
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
    Sum result{{term_}};
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
    Sum result{{term_}};
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
    // What is rewritten must not be what its value is derived from.
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
    // That it has a value does not follow from what holds of its values.
    std::vector<Dim> others = site_.premises;
    forget(others, *name);
    const Dim needed = site_.in == Site::In::Most ? *last : *last + 1;
    CERTIFY(step_.reasons.size() == 1 && holds(needed, step_.reasons[0], others),
            "{} may have no value", *name);
    if (site_.in == Site::In::Most) return Sum{{rest}};
    return product(state_.names_, {{rest}}, algebra::number(*last + 1));
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
    return Sum{{result}};
  }
  /// A fold by its closed form.
  Expected<Sum> induct() {
    TESSERA_TRY(Induction induction, state_.induction(site_, step_.item));
    CERTIFY(shown(induction.last, 0), "the fold may take in nothing");
    TESSERA_TRY_DONE(State::proved(induction.obligations, step_));
    return product(state_.names_, {{without_factor(term_, step_.item)}},
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

Expected<Done> State::proved(std::vector<State>& obligations, const Step& step) {
  CERTIFY(step.parts.size() == obligations.size(), "there are {} obligations", obligations.size());
  CERTIFY(step.goals.empty() || step.goals.size() == step.parts.size(), "a goal is not stated");
  for (std::size_t i = 0; i < step.parts.size(); ++i) {
    CERTIFY(step.goals.empty() || step.goals[i] == obligations[i].goal(),
            "obligation {} is another than is stated", i);
    for (const Step& part : step.parts[i]) TESSERA_TRY_DONE(obligations[i].apply(part));
    CERTIFY(obligations[i].is_proved(), "obligation {} is not proved", i);
  }
  return Done{};
}

Expected<std::vector<State>> State::cases(const Site& site, std::size_t factor) const {
  CERTIFY(
      factor < site.term->factors.size() && site.term->factors[factor].kind == Factor::Kind::Most,
      "there is no maximum");
  Factor most = site.term->factors[factor];
  most.exponent = 1;
  // It has to be one number for the whole of both sides, and taken of finitely many.
  CERTIFY(algebra::binds_its_variables({{{.factors = {most}}}}) && !is_of_fold(most),
          "the maximum hangs on a bound variable");
  const std::vector<Term>& pieces = (*most.args)[0].terms;
  for (const Term& piece : pieces)
    CERTIFY(piece.bound.empty() && piece.guards.empty(), "the maximum is over a range");
  const auto value = [&](std::size_t piece) { return (*pieces[piece].factors[0].args)[0]; };
  algebra::Names names = names_;
  Sum least;  // of two, less than zero: the largest of what they are less than zero
  if (pieces.size() == 2)
    least = algebra::most(
        names, {algebra::group(scaled(value(0), -1)), algebra::group(scaled(value(1), -1))});
  std::vector<State> result;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    State state = *this;
    state.names_ = names;
    const auto put_in = [&](const Factor& other) -> std::optional<Sum> {
      Factor base = other;
      base.exponent = 1;
      if (compare(base, most) == 0)
        return power(state.names_, opened(state.names_, value(i)), other.exponent);
      // If one of two is the largest, the other one is the least.
      if (pieces.size() == 2 && same(algebra::factor(base), least))
        return power(state.names_, opened(state.names_, scaled(value(1 - i), -1)), other.exponent);
      return std::nullopt;
    };
    // What is put in may bring the maximum back: max(2*x, 0) is 2*max(x, 0).
    constexpr int kRounds = 4;
    for (Sum& side : state.sides_)
      for (int round = 0; round < kRounds; ++round)
        side = algebra::changed(state.names_, side, {.factors = put_in});
    result.push_back(std::move(state));
  }
  return result;
}

Expected<Done> State::end_by_cases(const Step& step) {
  const auto site = this->site(step.side, step.place);
  CERTIFY(site.has_value(), "there is no such place");
  TESSERA_TRY(std::vector<State> all, cases(*site, step.item));
  TESSERA_TRY_DONE(proved(all, step));
  for (Sum& side : sides_) side = {};
  return Done{};
}

Expected<std::vector<State>> State::signs(const Site& site, std::size_t factor,
                                          const std::vector<Dim>& pieces) const {
  CERTIFY(factor < site.term->factors.size(), "there is no such factor");
  Factor chosen = site.term->factors[factor];
  chosen.exponent = 1;
  Sum of;
  if (chosen.kind == Factor::Kind::Most) {
    const std::vector<Term>& all = (*chosen.args)[0].terms;
    CERTIFY(pieces.size() == 2, "two parts of the maximum are needed");
    for (const int which : {0, 1}) {
      const std::int64_t piece = pieces[which].constant().value_or(-1);
      CERTIFY(piece >= 0 && piece < std::ssize(all), "there is no such part");
      const Term& term = all[static_cast<std::size_t>(piece)];
      CERTIFY(term.bound.empty() && term.guards.empty(), "the part is over a range");
      of = add(std::move(of), scaled((*term.factors[0].args)[0], which == 0 ? 1 : -1));
    }
    of = closed(std::move(of));
  } else {
    CERTIFY(chosen.truth, "the factor is neither a maximum nor 0 or 1");
    of = chosen.kind == Factor::Kind::Apply ? (*chosen.args)[0] : algebra::factor(chosen);
  }
  // It has to be one number for the whole of both sides.
  CERTIFY(algebra::binds_its_variables(of) && !has_bottom(of), "the sum hangs on more");
  CERTIFY(
      std::ranges::none_of(
          of.terms, [](const Term& term) { return std::ranges::any_of(term.factors, is_of_fold); }),
      "the sum hangs on a fold");
  // What both sides are said of: a side that divides by it is not defined where it is zero.
  const auto is_divided_by = [&](const Sum& zero) {
    return std::ranges::any_of(sides_, [&](const Sum& side) {
      return std::ranges::any_of(closed(side).terms, [&](const Term& term) {
        return term.bound.empty() && term.guards.empty() &&
               std::ranges::none_of(term.factors, &Factor::truth) &&
               std::ranges::any_of(term.factors, [&](const Factor& f) {
                 if (f.exponent.sign() >= 0) return false;
                 if (f.kind == Factor::Kind::Power) return same((*f.args)[0], zero);
                 Factor base = f;
                 base.exponent = 1;
                 return same(algebra::factor(base), zero);
               });
      });
    });
  };
  std::vector<State> result;
  for (const int sign : {-1, 0, 1}) {
    if (!may_have(of, sign, signs_) || (sign == 0 && is_divided_by(of))) continue;
    State state = *this;
    state.signs_.push_back({of, sign});
    for (Sum& side : state.sides_) side = decided(state.names_, side, state.signs_);
    result.push_back(std::move(state));
  }
  return result;
}

Expected<Done> State::end_by_signs(const Step& step) {
  const auto site = this->site(step.side, step.place);
  CERTIFY(site.has_value(), "there is no such place");
  TESSERA_TRY(std::vector<State> all, signs(*site, step.item, step.dims));
  TESSERA_TRY_DONE(proved(all, step));
  for (Sum& side : sides_) side = {};
  return Done{};
}

Expected<State::Induction> State::induction(const Site& site, std::size_t factor) const {
  CERTIFY(
      factor < site.term->factors.size() && site.term->factors[factor].kind == Factor::Kind::Fold,
      "there is no fold");
  CERTIFY(!contains(site.term->factors[factor], algebra::kStep), "one induction at a time");
  algebra::Names names = names_;
  const auto steps = algebra::induction_of(names, site.term->factors[factor]);
  CERTIFY(steps.has_value(), "the fold has no plain range");
  Induction result{.closed_form = steps->closed_form, .last = steps->last};
  for (const auto& [from, to, first] : steps->obligations) {
    State state = *this;
    state.sides_[0] = from;
    state.sides_[1] = to;
    state.facts_ = site.premises;
    if (!first) state.facts_.push_back(Dim::symbol(std::string(algebra::kStep)) - 1);
    state.names_ = names;
    result.obligations.push_back(std::move(state));
  }
  return result;
}

Sum State::element(const std::string& tensor, const std::vector<Dim>& at) {
  const Tensor& made = tensors_->find(tensor)->second;
  algebra::ElementBindings meaning{
      .sizes = made.sizes,
      .operand =
          [&](const std::string& operand) {
            for (std::size_t i = 0; i < made.operands.size(); ++i) {
              if (made.definition.inputs[i].name != operand) continue;
              const Tensor& read = tensors_->find(made.operands[i])->second;
              return algebra::ElementBindings::Tensor{made.operands[i], read.type.shape,
                                                      read.type.dtype, read.uniform};
            }
            return algebra::ElementBindings::Tensor{};
          },
      .named_reals = named_reals_};
  return algebra::element(names_, made.definition.outputs[made.output], at, std::move(meaning));
}

bool State::is_same() const {
  const Sum source = closed(sides_[0]), target = closed(sides_[1]);
  return same(source, target) && is_defined(source) && algebra::binds_its_variables(source);
}

namespace {

/// Whether it ends a proof.
bool ends(Kind kind) {
  return kind == Kind::Cases || kind == Kind::Signs;
}

Expected<Done> record(State& state, Step& step);

Expected<Done> record(State& state, Proof& proof) {
  for (Step& step : proof) TESSERA_TRY_DONE(record(state, step));
  return Done{};
}

Expected<Done> record(State& state, Step& step) {
  step.results.clear();
  step.goals.clear();
  std::vector<State> obligations;
  if (step.kind == Kind::Induct || ends(step.kind)) {
    const auto site = state.site(step.side, step.place);
    CERTIFY(site.has_value(), "there is no such place");
    if (step.kind == Kind::Induct) {
      TESSERA_TRY(State::Induction induction, state.induction(*site, step.item));
      obligations = std::move(induction.obligations);
    } else if (step.kind == Kind::Cases) {
      TESSERA_TRY(obligations, state.cases(*site, step.item));
    } else {
      TESSERA_TRY(obligations, state.signs(*site, step.item, step.dims));
    }
  }
  for (std::size_t i = 0; i < step.parts.size() && i < obligations.size(); ++i) {
    step.goals.push_back(obligations[i].goal());
    TESSERA_TRY_DONE(record(obligations[i], step.parts[i]));
  }
  TESSERA_TRY_DONE(state.apply(step));
  const bool both = step.kind == Kind::Divide && step.place.empty();
  if (both)
    step.results = {sum_text(state.side(0)), sum_text(state.side(1))};
  else if (!ends(step.kind))
    step.results = {sum_text(state.side(step.side))};
  return Done{};
}

bool is_recorded(const Proof& proof) {
  return std::ranges::all_of(proof, [](const Step& step) {
    return (ends(step.kind) || !step.results.empty()) && step.goals.size() == step.parts.size() &&
           std::ranges::all_of(step.parts, is_recorded);
  });
}

}  // namespace

std::pair<std::string, std::string> State::goal() const {
  return {sum_text(sides_[0]), sum_text(sides_[1])};
}

Expected<Certificate> recorded(Certificate certificate) {
  for (std::size_t pair = 0; pair < certificate.proofs.size(); ++pair) {
    TESSERA_TRY(State state, State::of(certificate.claim, pair));
    TESSERA_TRY_DONE(record(state, certificate.proofs[pair]));
  }
  return certificate;
}

bool is_recorded(const Certificate& certificate) {
  return std::ranges::all_of(certificate.proofs,
                             [](const Proof& proof) { return is_recorded(proof); });
}

bool State::is_proved() const {
  if (is_same()) return true;
  for (const Sum& side : sides_)
    if (!is_defined(side) || !algebra::binds_its_variables(side)) return false;
  algebra::Names names = names_;
  return are_equal(names, sides_[0], sides_[1]);
}

Expected<Done> check(const Certificate& certificate) {
  CERTIFY(!certificate.claim.pairs.empty(), "it claims nothing: there is no pair");
  CERTIFY(certificate.proofs.size() == certificate.claim.pairs.size(),
          "there are {} proofs for {} pairs", certificate.proofs.size(),
          certificate.claim.pairs.size());
  for (std::size_t pair = 0; pair < certificate.proofs.size(); ++pair) {
    TESSERA_TRY(State state, State::of(certificate.claim, pair));
    for (const Step& step : certificate.proofs[pair]) TESSERA_TRY_DONE(state.apply(step));
    CERTIFY(state.is_proved(), "the proof of pair {} does not end in equal sums", pair);
  }
  return Done{};
}

}  // namespace tessera::certify
