#include "tessera/certify/check.h"

#include <algorithm>
#include <set>

#include "tessera/certify/conditions.h"
#include "tessera/expr/element.h"
#include "tessera/expr/induction.h"

namespace tessera::certify {
namespace {

using algebra::Factor;
using algebra::Sum;
using algebra::Term;

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

}  // namespace

bool has_doubles(const Claim& claim) {
  return std::ranges::any_of(claim.inputs,
                             [](const Input& i) { return i.type.dtype == DType::F64; }) ||
         std::ranges::any_of(claim.values, [](const Value& value) {
           return std::ranges::any_of(value.definition->outputs,
                                      [](const Output& o) { return o.dtype == DType::F64; });
         });
}

Expected<State> State::of(const Claim& claim, std::size_t pair) {
  State state;
  CERTIFY(!claim.named_reals || !has_doubles(claim), "constants of doubles are named");
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
    const Definition& definition = *value.definition;
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
    Tensor tensor{value.definition,
                  value.output,
                  value.operands,
                  std::move(sizes),
                  types[value.output],
                  {},
                  true};
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
  return site.term == nullptr ? std::nullopt : std::optional(std::move(site));
}

namespace {

/// Puts a sum in the place of a term.
void replace_term(Sum& sum, std::size_t term, Sum by) {
  const auto here = sum.terms.begin() + static_cast<std::ptrdiff_t>(term);
  if (by.terms.size() == 1) {
    *here = std::move(by.terms[0]);
    return;
  }
  sum.terms.insert(sum.terms.erase(here), std::make_move_iterator(by.terms.begin()),
                   std::make_move_iterator(by.terms.end()));
}

}  // namespace

Expected<Sum> State::replacement_of(const Sum& sum, const Step& step, std::size_t depth,
                                    Site site) {
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
    TESSERA_TRY(Sum inner, replacement_of(*arg, step, depth + 3, std::move(site)));
    Factor factor = term.factors[f];
    std::vector<Sum> args = *factor.args;
    replace_term(args[a], step.place[depth + 3], std::move(inner));
    args[a] = closed(std::move(args[a]));
    factor.args = std::make_shared<const std::vector<Sum>>(std::move(args));
    if (factor.kind == Factor::Kind::Group) {
      replacement = algebra::sum_of(term);
      replacement.terms[0].factors[f] = std::move(factor);
    } else {
      replacement = product(names_, sum_of(without_factor(term, f)), remade(names_, factor));
    }
  }
  return replacement;
}

Expected<Done> State::apply(const Step& step) {
  if (step.kind == Kind::Divide && step.place.empty()) return divide_position(step);
  CERTIFY(step.side == 0 || step.side == 1, "there are two sides");
  if (step.kind == Kind::Cases) return end_by_cases(step);
  if (step.kind == Kind::Signs) return end_by_signs(step);
  Sum& side = sides_[step.side];
  TESSERA_TRY(Sum replacement, replacement_of(side, step, 0, {.premises = facts_}));
  CERTIFY(side.terms.size() - 1 + replacement.terms.size() < 100'000, "the sums grow too large");
  replace_term(side, step.place[0], std::move(replacement));
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
              if (made.definition->inputs[i].name != operand) continue;
              const Tensor& read = tensors_->find(made.operands[i])->second;
              return algebra::ElementBindings::Tensor{made.operands[i], read.type.shape,
                                                      read.type.dtype, read.uniform};
            }
            return algebra::ElementBindings::Tensor{};
          },
      .named_reals = named_reals_};
  return algebra::element(names_, made.definition->outputs[made.output], at, std::move(meaning));
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
