#include "tessera/prove/normalise.h"

#include <algorithm>
#include <set>

#include "tessera/prove/reasons.h"

namespace tessera::prove {
namespace {

using algebra::closed;
using algebra::Factor;
using algebra::Sum;
using algebra::Term;
using certify::Kind;
using certify::Reason;
using certify::State;
using certify::Step;

using Place = std::vector<std::size_t>;

class Normaliser {
 public:
  Normaliser(State& state, certify::Proof& proof, const Limits& limits)
      : state_(state), proof_(proof), limits_(limits) {}

  bool run(std::string& why) {
    // A position that is taken apart is so in all terms, also in those that were done.
    do {
      divided_ = false;
      for (int side : {0, 1}) sweep(side);
    } while (divided_ && !given_up_);
    while (!given_up_ && limits_.reconciles && !state_.is_proved())
      if (!reconcile()) break;
    if (!given_up_ && state_.is_proved()) return true;
    why = given_up_ ? why_ : left_over();
    return false;
  }

 private:
  /// Simplifies all terms of a side.
  bool sweep(int side) {
    for (std::size_t term = 0; term < state_.side(side).terms.size();) {
      if (!improve(side, {term})) ++term;
      if (given_up_) return false;
    }
    return true;
  }

  bool apply(Step step) {
    if (given_up_) return false;
    constexpr int kMostSplits = 120;
    if (step.kind == Kind::Split && ++splits_ > kMostSplits)
      return give_up("there are too many cases");
    if (auto done = state_.apply(step); !done) return false;
    proof_.push_back(std::move(step));
    const auto terms =
        static_cast<std::int64_t>(state_.side(0).terms.size() + state_.side(1).terms.size());
    if (terms > limits_.most_terms || ++steps_ > limits_.most_steps)
      return give_up("the sums grow too large");
    if (limits_.stop != nullptr && *limits_.stop) return give_up("the time is up");
    return true;
  }
  bool give_up(std::string why) {
    given_up_ = true;
    why_ = std::move(why);
    return true;
  }

  /// One step at the term or inside of it; false if there is none.
  bool improve(int side, const Place& place) {
    const auto site = state_.site(side, place);
    if (!site) return false;
    const Step here{.side = side, .place = place};
    const bool folded = site->in == State::Site::In::Fold;
    const bool fresh = unchecked(side, place, *site);
    if (!folded) {
      if (fresh && remove_void(here, *site)) return true;
      if (unfold(here, *site) || solve(here, *site)) return true;
      if (operations(here, *site) || shift(here, *site) || peel(here, *site)) return true;
    }
    if (fresh) {
      if (drop(here, *site)) return true;
      if (!folded &&
          (count(here, *site) || attain(here, *site) || pin(here, *site) || tighten(here, *site)))
        return true;
      remember(side, place, *site);
    }
    return inside(here, *site);
  }

  // Guards are looked at once, until they change.
  using Seen = std::pair<std::vector<Dim>, std::size_t>;
  bool unchecked(int side, const Place& place, const State::Site& site) const {
    const auto here = seen_.find({side, place});
    return here == seen_.end() || here->second != Seen(site.premises, site.own);
  }
  void remember(int side, const Place& place, const State::Site& site) {
    seen_.insert_or_assign({side, place}, Seen(site.premises, site.own));
  }

  bool remove_void(const Step& here, const State::Site& site) {
    if (site.term->guards.empty()) return false;
    const auto reason = arithmetic_.reason_for(-1, {.list = site.premises});
    if (!reason) return false;
    Step step = here;
    step.kind = Kind::Void;
    step.reasons = {*reason};
    return apply(std::move(step));
  }

  bool unfold(const Step& here, const State::Site& site) {
    for (std::size_t i = 0; i < site.term->factors.size(); ++i) {
      const Factor& factor = site.term->factors[i];
      if (factor.kind == Factor::Kind::Read && state_.is_computed(factor.name) &&
          !(limits_.keeps && limits_.keeps(factor.name))) {
        Step step = here;
        step.kind = Kind::Unfold;
        step.item = i;
        return apply(std::move(step));
      }
      if (factor.kind == Factor::Kind::Fold && induct(here, site, i)) return true;
    }
    return false;
  }

  bool induct(const Step& here, const State::Site& site, std::size_t factor) {
    auto induction = state_.induction(site, factor);
    if (!induction) return false;
    const auto reason = arithmetic_.reason_for(induction->last, {.list = site.premises});
    if (!reason) return false;
    Step step = here;
    step.kind = Kind::Induct;
    step.item = factor;
    step.reasons = {*reason};
    for (State& obligation : induction->obligations) {
      certify::Proof part;
      std::string why;
      if (!settle(obligation, part, limits_, why)) return false;
      step.parts.push_back(std::move(part));
    }
    return apply(std::move(step));
  }

  /// A bound variable that guards pin down.
  bool solve(const Step& here, const State::Site& site) {
    const Term& term = *site.term;
    for (const Dim& guard : term.guards) {
      if (std::ranges::find(term.guards, -guard) == term.guards.end() &&
          (-guard).least().value_or(-1) < 0)
        continue;
      for (std::size_t i = 0; i < term.bound.size(); ++i) {
        if (!guard.contains(term.bound[i])) continue;
        const auto linear = guard.linear_in(term.bound[i]);
        if (!linear || !(linear->factor->is(1) || linear->factor->is(-1))) continue;
        Step step = here;
        step.kind = Kind::Solve;
        step.item = i;
        step.dims = {linear->factor->is(1) ? -*linear->rest : *linear->rest};
        if (apply(std::move(step))) return true;
      }
    }
    return false;
  }

  /// A bound variable whose least value is e and not 0 is counted from there.
  bool shift(const Step& here, const State::Site& site) {
    const Term& term = *site.term;
    for (std::size_t k = 0; k < term.guards.size(); ++k) {
      for (std::size_t i = 0; i < term.bound.size(); ++i) {
        if (!term.guards[k].contains(term.bound[i])) continue;
        const auto linear = term.guards[k].linear_in(term.bound[i]);
        if (!linear || !linear->factor->is(1)) continue;
        const Dim least = -*linear->rest;
        // Worth it if this is the only lower limit, or the strongest.
        const auto stronger =
            arithmetic_.reason_for(least, {.list = site.premises, .without = site.own + k});
        if (!stronger) continue;
        Step step = here;
        step.kind = Kind::Shift;
        step.item = i;
        step.dims = {least};
        step.reasons = {Reason{.multiples = {{site.own + k, Dim(1)}}}};
        if (apply(std::move(step))) return true;
      }
    }
    return false;
  }

  /// In a proof by induction, the last of k + 1 terms is taken off.
  bool peel(const Step& here, const State::Site& site) {
    const Dim k = Dim::symbol("%k");
    for (const std::string& name : site.term->bound) {
      const Dim rest = k - Dim::symbol(name);
      if (std::ranges::find(site.term->guards, rest) == site.term->guards.end() ||
          std::ranges::find(site.term->guards, -rest) != site.term->guards.end() ||
          std::ranges::find(site.term->guards, rest - 1) != site.term->guards.end())
        continue;
      Step step = here;
      step.kind = Kind::Split;
      step.dims = {rest - 1};
      if (apply(std::move(step))) return true;
    }
    return false;
  }

  bool drop(const Step& here, const State::Site& site) {
    for (std::size_t k = 0; k < site.term->guards.size(); ++k) {
      const auto reason = arithmetic_.reason_for(site.term->guards[k],
                                                 {.list = site.premises, .without = site.own + k});
      if (!reason) continue;
      Step step = here;
      step.kind = Kind::Drop;
      step.item = k;
      step.reasons = {*reason};
      if (apply(std::move(step))) return true;
    }
    return false;
  }

  bool count(const Step& here, const State::Site& site) {
    const Term& term = *site.term;
    for (std::size_t i = 0; i < term.bound.size(); ++i) {
      const std::string& name = term.bound[i];
      const bool spoken = std::ranges::any_of(
          term.factors, [&](const Factor& factor) { return contains(factor, name); });
      if (spoken) continue;
      std::vector<Dim> limits;
      for (const Dim& guard : term.guards)
        if (guard.contains(name)) limits.push_back(guard + Dim::symbol(name));
      if (limits.size() != 1 || limits[0].contains(name)) continue;
      const Dim needed = site.in == State::Site::In::Most ? limits[0] : limits[0] + 1;
      std::vector<Dim> others = site.premises;
      for (Dim& premise : others)
        if (premise.contains(name)) premise = 0;
      const auto reason = arithmetic_.reason_for(needed, {.list = others});
      if (!reason) continue;
      Step step = here;
      step.kind = Kind::Count;
      step.item = i;
      step.reasons = {*reason};
      if (apply(std::move(step))) return true;
    }
    return false;
  }

  /// A group of a maximum that does not hang on what it runs over.
  bool attain(const Step& here, const State::Site& site) {
    const Term& term = *site.term;
    if (site.in != State::Site::In::Most || term.bound.empty()) return false;
    for (const std::string& name : term.bound)
      if (contains(term.factors[0], name)) return false;
    const std::vector<Dim> outside(site.premises.begin(),
                                   site.premises.begin() + static_cast<std::ptrdiff_t>(site.own));
    // Values that limits suggest: the least ones, and small numbers.
    std::vector<std::vector<Dim>> candidates;
    for (const std::string& name : term.bound) {
      std::vector<Dim>& values = candidates.emplace_back(std::vector<Dim>{0, 1, 2});
      for (const Dim& guard : term.guards) {
        const auto linear = guard.linear_in(name);
        if (!linear || !(linear->factor->is(1) || linear->factor->is(-1))) continue;
        const Dim limit = linear->factor->is(1) ? -*linear->rest : *linear->rest;
        if (std::ranges::none_of(term.bound, [&](const auto& n) { return limit.contains(n); }))
          values.push_back(limit);
      }
    }
    Step step = here;
    step.kind = Kind::Attain;
    const std::function<bool(std::size_t)> choose = [&](std::size_t variable) {
      if (variable == candidates.size()) return true;
      for (const Dim& value : candidates[variable]) {
        const auto natural = arithmetic_.reason_for(value, {.list = outside});
        if (!natural) continue;
        step.dims.push_back(value);
        step.reasons.push_back(*natural);
        algebra::Replacement values;
        for (std::size_t i = 0; i <= variable; ++i) values.emplace(term.bound[i], step.dims[i]);
        const bool fits = std::ranges::all_of(term.guards, [&](const Dim& guard) {
          const bool open = std::any_of(
              term.bound.begin() + static_cast<std::ptrdiff_t>(variable) + 1, term.bound.end(),
              [&](const std::string& name) { return guard.contains(name); });
          return open || !guard.contains(term.bound[variable]) ||
                 arithmetic_.reason_for(algebra::substituted(guard, values), {.list = outside});
        });
        if (fits && choose(variable + 1)) return true;
        step.dims.pop_back();
        step.reasons.pop_back();
      }
      return false;
    };
    if (!choose(0)) return false;
    algebra::Replacement values;
    for (std::size_t i = 0; i < term.bound.size(); ++i) values.emplace(term.bound[i], step.dims[i]);
    for (const Dim& guard : term.guards) {
      const Dim at = algebra::substituted(guard, values);
      if (at == guard) continue;
      const auto reason = arithmetic_.reason_for(at, {.list = outside});
      if (!reason) return false;
      step.reasons.push_back(*reason);
    }
    return apply(std::move(step));
  }

  /// A position that the guards leave one value.
  bool pin(const Step& here, const State::Site& site) {
    const Term& term = *site.term;
    std::set<std::string> symbols;
    for (const Dim& guard : term.guards) guard.collect_symbols(symbols);
    for (const std::string& name : symbols) {
      if (!name.starts_with("%i")) continue;
      const Dim variable = Dim::symbol(name);
      Dim least = 0;
      for (const Dim& premise : site.premises)
        if (const auto value =
                premise.contains(name) ? (variable - premise).constant() : std::nullopt;
            value && *value > 0)
          least = std::max(least, Dim(*value));
      // It has to be spoken of beyond the guards that pin it down.
      const bool elsewhere =
          std::ranges::any_of(term.factors, [&](const Factor& f) { return contains(f, name); }) ||
          std::ranges::any_of(term.guards, [&](const Dim& guard) {
            return guard.contains(name) && guard != variable - least && guard != least - variable;
          });
      if (!elsewhere) continue;
      const auto high = arithmetic_.reason_for(least - variable, {.list = site.premises});
      const auto low = arithmetic_.reason_for(variable - least, {.list = site.premises});
      if (!high || !low) continue;
      Step step = here;
      step.kind = Kind::Pin;
      step.dims = {variable, least};
      step.reasons = {*low, *high};
      return apply(std::move(step));
    }
    return false;
  }

  /// A guard that says the same as a shorter one is replaced by it: 3*a + b >= 3 is a >= 1 where b
  /// is less than 3.
  bool tighten(const Step& here, const State::Site& site) {
    for (std::size_t k = 0; k < site.term->guards.size(); ++k) {
      const Dim& guard = site.term->guards[k];
      for (const Dim& shorter : shorter_guards(guard, site)) {
        const auto follows = arithmetic_.reason_for(shorter, {.list = site.premises});
        if (!follows) continue;
        std::vector<Dim> others = site.premises;
        others[site.own + k] = shorter;
        const auto back = arithmetic_.reason_for(guard, {.list = others});
        if (!back) continue;
        Step step = here;
        step.kind = Kind::Tighten;
        step.item = k;
        step.dims = {shorter};
        step.reasons = {*follows, *back};
        return apply(std::move(step));
      }
    }
    return false;
  }

  static std::vector<Dim> shorter_guards(const Dim& guard, const State::Site& site) {
    std::vector<Dim> result;
    const std::vector<Dim::Part> parts = guard.parts();
    if (parts.size() < 2) return result;
    const auto suggest = [&](const Dim& shorter) {
      if (shorter.parts().size() < parts.size() && !shorter.constant() && !shorter.is_undefined() &&
          std::ranges::find(site.premises, shorter) == site.premises.end() &&
          std::ranges::find(result, shorter) == result.end())
        result.push_back(shorter);
    };
    for (const Dim::Part& part : parts) {
      if (part.product.is(1)) continue;
      std::vector<Dim> divisors;
      if (part.coefficient > 1 || part.coefficient < -1)
        divisors.emplace_back(part.coefficient < 0 ? -part.coefficient : part.coefficient);
      const std::vector<Dim> factors = part.product.factors();
      if (factors.size() > 1) divisors.insert(divisors.end(), factors.begin(), factors.end());
      for (const Dim& divisor : divisors) {
        // What is a multiple of the divisor, and numbers rounded.
        Dim quotient = 0;
        for (const Dim::Part& other : parts) {
          const Dim whole = other.product * Dim(other.coefficient);
          const Dim share = floor_div(whole, divisor);
          if (share * divisor == whole || (other.product.is(1) && share.constant()))
            quotient = quotient + share;
        }
        for (const int more : {0, -1, 1}) suggest(quotient + more);
      }
    }
    // An outer variable that has one value only.
    std::set<std::string> symbols;
    guard.collect_symbols(symbols);
    for (const std::string& name : symbols) {
      for (const Dim& premise : site.premises) {
        if (!premise.contains(name) || premise == guard) continue;
        const Dim limit = premise + Dim::symbol(name);  // premise: limit - name >= 0
        if (!limit.constant()) continue;
        const bool pinned =
            limit.is(0) || std::ranges::find(site.premises, -premise) != site.premises.end();
        if (pinned) suggest(algebra::substituted(guard, {{name, limit}}));
      }
    }
    return result;
  }

  // Quotients, remainders, minima and maxima.

  static void collect(const Dim& dim, std::vector<Dim::Operation>& into) {
    for (Dim::Operation& operation : dim.operations()) {
      const auto is_same = [&](const Dim::Operation& o) { return o.whole == operation.whole; };
      if (std::ranges::none_of(into, is_same)) into.push_back(std::move(operation));
    }
  }
  /// Those that speak of nothing that is bound further inside.
  static void collect(const Term& term, const std::vector<std::string>& hidden,
                      std::vector<Dim::Operation>& into) {
    std::vector<Dim::Operation> found;
    for (const Dim& guard : term.guards) collect(guard, found);
    for (const Factor& factor : term.factors) {
      for (const Dim& dim : factor.at) collect(dim, found);
      if (factor.args == nullptr) continue;
      for (const Sum& arg : *factor.args) {
        for (const Term& inner : arg.terms) {
          std::vector<std::string> deeper = hidden;
          deeper.insert(deeper.end(), inner.bound.begin(), inner.bound.end());
          collect(inner, deeper, found);
        }
      }
    }
    for (Dim::Operation& operation : found)
      if (std::ranges::none_of(hidden, [&](const auto& s) { return operation.whole.contains(s); }))
        into.push_back(std::move(operation));
  }

  bool operations(const Step& here, const State::Site& site) {
    std::vector<Dim::Operation> found;
    collect(*site.term, {}, found);
    // Inner ones first: they may be all that keeps an outer one from being settled.
    std::ranges::reverse(found);
    for (const Dim::Operation& operation : found)
      if (settle_operation(here, site, operation)) return true;
    for (const Dim::Operation& operation : found)
      if (remove_operation(here, site, operation)) return true;
    return false;
  }

  bool settle_operation(const Step& here, const State::Site& site, const Dim::Operation& of) {
    Step step = here;
    step.kind = Kind::Settle;
    const Premises premises{.list = site.premises, .avoiding = &of.whole};
    if (of.op == Dim::Op::Min || of.op == Dim::Op::Max) {
      for (const Dim& chosen : {of.a, of.b}) {
        const Dim difference = chosen == of.a ? of.b - of.a : of.a - of.b;
        const auto reason =
            arithmetic_.reason_for(of.op == Dim::Op::Min ? difference : -difference, premises);
        if (!reason) continue;
        step.dims = {of.whole, chosen};
        step.reasons = {*reason};
        return apply(std::move(step));
      }
      return false;
    }
    const auto positive = arithmetic_.reason_for(of.b - 1, premises);
    if (!positive) return false;
    for (const Dim& quotient : quotients(of)) {
      const auto low = arithmetic_.reason_for(of.a - of.b * quotient, premises);
      if (!low) continue;
      const auto high = arithmetic_.reason_for(of.b * quotient + of.b - 1 - of.a, premises);
      if (!high) continue;
      step.dims = {of.whole, quotient};
      step.reasons = {*positive, *low, *high};
      return apply(std::move(step));
    }
    return false;
  }

  /// What a/b might be: 0, or what takes multiples of b out of a.
  static std::vector<Dim> quotients(const Dim::Operation& of) {
    std::vector<Dim> result{0};
    if (of.a.constant() || of.b.constant()) result.push_back(1);
    const auto size = [](const Dim& dim) { return dim.parts().size(); };
    std::set<std::string> symbols;
    of.a.collect_symbols(symbols);
    for (const std::string& name : symbols) {
      const Dim candidate = Dim::symbol(name);
      if (size(of.a - candidate * of.b) < size(of.a)) result.push_back(candidate);
    }
    for (const Dim::Part& part : of.a.parts())
      for (const Dim::Part& divisor : of.b.parts()) {
        if (divisor.coefficient == 0 || part.coefficient % divisor.coefficient != 0) continue;
        std::vector<Dim> left = part.product.is(1) ? std::vector<Dim>{} : part.product.factors();
        bool divides = true;
        for (const Dim& factor :
             divisor.product.is(1) ? std::vector<Dim>{} : divisor.product.factors()) {
          const auto at = std::ranges::find(left, factor);
          if (at == left.end()) {
            divides = false;
            break;
          }
          left.erase(at);
        }
        if (!divides) continue;
        const Dim candidate = product(left) * Dim(part.coefficient / divisor.coefficient);
        if (size(of.a - candidate * of.b) <= size(of.a) &&
            std::ranges::find(result, candidate) == result.end())
          result.push_back(candidate);
      }
    if (result.size() > 8) result.resize(8);
    return result;
  }

  bool remove_operation(const Step& here, const State::Site& site, const Dim::Operation& of) {
    const Term& term = *site.term;
    if (of.op == Dim::Op::Min || of.op == Dim::Op::Max) {
      Step step = here;
      step.kind = Kind::Split;
      step.dims = {of.a - of.b};
      return apply(std::move(step));
    }
    const Premises premises{.list = site.premises, .avoiding = &of.whole};
    const auto positive = arithmetic_.reason_for(of.b - 1, premises);
    if (!positive) return false;
    Step step = here;
    step.reasons = {*positive};
    if (const auto symbol = of.a.as_symbol()) {
      step.kind = Kind::Divide;
      const auto bound = std::ranges::find(term.bound, *symbol);
      if (bound != term.bound.end()) {
        step.item = static_cast<std::size_t>(bound - term.bound.begin());
        step.dims = {of.b};
        if (apply(step)) return true;
      } else if (symbol->starts_with("%i") && !of.b.contains("%")) {
        // A position: on both sides at once, so only facts may be used.
        const auto fact = arithmetic_.reason_for(of.b - 1, {.list = state_.facts()});
        std::set<std::string> symbols;
        of.b.collect_symbols(symbols);
        const bool plain =
            std::ranges::none_of(symbols, [](const auto& s) { return s.starts_with('%'); });
        if (fact && plain) {
          Step both{.kind = Kind::Divide, .dims = {of.a, of.b}, .reasons = {*fact}};
          if (apply(std::move(both))) {
            seen_.clear();
            divided_ = true;
            return true;
          }
        }
      }
    }
    const auto natural = arithmetic_.reason_for(of.a, premises);
    if (!natural) return false;
    // A quotient of positions and outer variables stays one: both sides write it alike. A bound
    // variable inside of it hides what it runs over.
    const bool hides = std::ranges::any_of(
        term.bound, [&](const std::string& name) { return of.whole.contains(name); });
    if (!hides) return false;
    step.kind = Kind::Quotient;
    step.dims = {of.whole};
    step.reasons.push_back(*natural);
    return apply(std::move(step));
  }

  /// Steps in the arguments of functions, then splits by what they distinguish.
  bool inside(const Step& here, const State::Site& site) {
    const Term term = *site.term;
    for (std::size_t f = 0; f < term.factors.size(); ++f) {
      if (term.factors[f].args == nullptr) continue;
      for (std::size_t a = 0; a < term.factors[f].args->size(); ++a) {
        for (std::size_t t = 0; t < (*term.factors[f].args)[a].terms.size(); ++t) {
          Place place = here.place;
          place.insert(place.end(), {f, a, t});
          if (improve(here.side, place)) return true;
        }
      }
    }
    for (const Factor& factor : term.factors) {
      if (factor.args == nullptr) continue;
      if (factor.kind == Factor::Kind::Fold) continue;
      for (const Sum& arg : *factor.args) {
        for (const Term& inner : arg.terms) {
          for (const Dim& guard : inner.guards) {
            const bool outer = std::ranges::none_of(
                inner.bound, [&](const std::string& name) { return guard.contains(name); });
            if (!outer) continue;
            Step step = here;
            step.kind = Kind::Split;
            step.dims = {guard};
            return apply(std::move(step));
          }
        }
      }
    }
    return false;
  }

  /// Terms of a side that the other does not have, as they are in the state.
  std::vector<std::size_t> unmatched(int side) const {
    std::vector<Term> others;
    for (const Term& term : closed(state_.side(1 - side)).terms) others.push_back(term);
    const Sum own = closed(state_.side(side));
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < state_.side(side).terms.size(); ++i) {
      const Sum one = closed({{state_.side(side).terms[i]}});
      if (one.terms.empty()) continue;
      const auto is_same = [&](const Term& other) { return compare(other, one.terms[0]) == 0; };
      if (std::ranges::none_of(others, is_same)) result.push_back(i);
    }
    return result;
  }

  /// Splits a term that is left over by a guard of one that is left over on the other side.
  bool reconcile() {
    constexpr int kMostRounds = 16;
    if (++reconciled_ > kMostRounds) return false;
    for (int side : {0, 1}) {
      const auto own = unmatched(side), others = unmatched(1 - side);
      constexpr std::size_t kMostLeft = 12;  // more than that is another sum, not other cases
      if (own.size() > kMostLeft || others.size() > kMostLeft) return false;
      for (const std::size_t i : own) {
        for (const std::size_t j : others) {
          const Sum a = closed({{state_.side(side).terms[i]}});
          const Sum b = closed({{state_.side(1 - side).terms[j]}});
          if (a.terms.empty() || b.terms.empty() ||
              a.terms[0].bound.size() != b.terms[0].bound.size())
            continue;
          for (const Dim& guard : b.terms[0].guards) {
            if (std::ranges::find(a.terms[0].guards, guard) != a.terms[0].guards.end()) continue;
            // Only where nothing bound is spoken of, the guard means the same on the other side.
            std::set<std::string> symbols;
            guard.collect_symbols(symbols);
            const bool bound = std::ranges::any_of(symbols, [&](const std::string& s) {
              return std::ranges::find(b.terms[0].bound, s) != b.terms[0].bound.end();
            });
            if (bound || !guard.operations().empty()) continue;
            const auto site = state_.site(side, {i});
            if (!site || arithmetic_.reason_for(guard, {.list = site->premises}) ||
                arithmetic_.reason_for(-guard - 1, {.list = site->premises}))
              continue;
            Step step{.kind = Kind::Split, .side = side, .place = {i}, .dims = {guard}};
            if (!apply(std::move(step))) continue;
            return sweep(side);
          }
        }
      }
    }
    return false;
  }

  std::string left_over() const {
    const Sum source = closed(state_.side(0)), target = closed(state_.side(1));
    const auto beyond = [](const Sum& of, const Sum& than) {
      Sum result;
      for (const Term& term : of.terms)
        if (std::ranges::none_of(than.terms, [&](const Term& t) { return compare(t, term) == 0; }))
          result.terms.push_back(term);
      return to_text(result);
    };
    return fmt::format("only the source has {}; only the target has {}", beyond(source, target),
                       beyond(target, source));
  }

  State& state_;
  certify::Proof& proof_;
  const Limits& limits_;
  Arithmetic arithmetic_;
  std::map<std::pair<int, Place>, Seen> seen_;
  std::int64_t steps_ = 0;
  int reconciled_ = 0, splits_ = 0;
  bool given_up_ = false, divided_ = false;
  std::string why_;
};

}  // namespace

bool settle(State& state, certify::Proof& proof, const Limits& limits, std::string& why) {
  return Normaliser(state, proof, limits).run(why);
}

}  // namespace tessera::prove
