#include "tessera/prove/guards.h"

#include <map>
#include <set>

#include "tessera/expr/induction.h"

namespace tessera::prove {
namespace {

using algebra::Factor;
using algebra::Term;
using certify::Kind;
using certify::Reason;
using certify::State;

bool has(const std::vector<Dim>& list, const Dim& e) {
  return std::ranges::find(list, e) != list.end();
}

/// The value of a variable at which a guard is zero, where that is plain to see.
std::optional<Dim> zero_of(const Dim& guard, const std::string& name) {
  if (!guard.contains(name)) return std::nullopt;
  const auto linear = guard.linear_in(name);
  if (linear && linear->factor.is(1)) return -linear->rest;
  if (linear && linear->factor.is(-1)) return linear->rest;
  return std::nullopt;
}

bool is_spoken_of(const Term& term, const std::string& name) {
  return std::ranges::any_of(term.factors,
                             [&](const Factor& factor) { return contains(factor, name); });
}

/// What a guard might be in short.
std::vector<Dim> shorter_guards(const Dim& guard, const State::Site& site) {
  std::vector<Dim> result;
  const std::vector<Dim::Part> parts = guard.parts();
  if (parts.size() < 2) return result;
  const auto suggest = [&](const Dim& shorter) {
    if (shorter.parts().size() < parts.size() && !shorter.constant() && !shorter.is_undefined() &&
        !has(site.premises, shorter) && !has(result, shorter))
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
      if (limit.is(0) || has(site.premises, -premise))
        suggest(algebra::substituted(guard, {{name, limit}}));
    }
  }
  return result;
}

/// Values of the bound variables of a group that its guards allow, with the reasons why.
class Attainment {
 public:
  explicit Attainment(const Spot& spot)
      : spot_(spot),
        bound_(spot.term().bound),
        outside_(spot.site.premises.begin(),
                 spot.site.premises.begin() + static_cast<std::ptrdiff_t>(spot.site.own)) {
    // Values that limits suggest: the least ones, and small numbers.
    for (const std::string& name : bound_) {
      std::vector<Dim>& values = candidates_.emplace_back(std::vector<Dim>{0, 1, 2});
      for (const Dim& guard : spot.term().guards)
        if (const auto limit = zero_of(guard, name); limit && !speaks_of_any(*limit, bound_))
          values.push_back(*limit);
    }
  }

  bool take() {
    if (!choose(0)) return false;
    for (const Dim& guard : spot_.term().guards) {
      const Dim at = algebra::substituted(guard, values_);
      if (at == guard) continue;
      const auto reason = reason_for(at);
      if (!reason) return false;
      step_.reasons.push_back(*reason);
    }
    return spot_.take(std::move(step_));
  }

 private:
  /// Values for a variable and those after it.
  bool choose(std::size_t variable) {
    if (variable == candidates_.size()) return true;
    for (const Dim& value : candidates_[variable]) {
      const auto natural = reason_for(value);
      if (!natural) continue;
      step_.dims.push_back(value);
      step_.reasons.push_back(*natural);
      values_.insert_or_assign(bound_[variable], value);
      if (fits(variable) && choose(variable + 1)) return true;
      values_.erase(bound_[variable]);
      step_.dims.pop_back();
      step_.reasons.pop_back();
    }
    return false;
  }

  /// Whether the guards on a variable hold, as far as all that they speak of has a value.
  bool fits(std::size_t variable) {
    const auto later = std::span(bound_).subspan(variable + 1);
    return std::ranges::all_of(spot_.term().guards, [&](const Dim& guard) {
      return speaks_of_any(guard, later) || !guard.contains(bound_[variable]) ||
             reason_for(algebra::substituted(guard, values_));
    });
  }

  std::optional<Reason> reason_for(const Dim& e) {
    return spot_.arithmetic.reason_for(e, {.list = outside_});
  }

  const Spot& spot_;
  const std::vector<std::string>& bound_;
  std::vector<Dim> outside_;  // what holds whether or not the guards do
  std::vector<std::vector<Dim>> candidates_;
  algebra::Replacement values_;
  certify::Step step_{.kind = Kind::Attain};
};

}  // namespace

bool remove_void(const Spot& spot) {
  const std::vector<Dim>& guards = spot.term().guards;
  if (guards.empty()) return false;
  if (const auto reason = spot.reason_for(-1))
    return spot.take({.kind = Kind::Void, .reasons = {*reason}});
  // Contradictions of guards with products of symbols, such as g*f + i >= 2*f, are searched from
  // the negated guard, whose products are the multipliers of the other premises.
  const auto has_product = [&](const Dim& guard) { return spot.arithmetic.has_product(guard); };
  if (std::ranges::none_of(guards, has_product) ||
      spot.arithmetic.hold_together(spot.site.premises))
    return false;
  for (std::size_t k = 0; k < guards.size(); ++k) {
    if (!has_product(guards[k])) continue;
    const std::size_t premise = spot.site.own + k;
    auto reason = spot.arithmetic.reason_for(-guards[k] - 1,
                                             {.list = spot.site.premises, .without = premise});
    if (!reason) continue;
    reason->multiples.emplace_back(premise, reason->scale);
    return spot.take({.kind = Kind::Void, .reasons = {*std::move(reason)}});
  }
  return false;
}

bool solve(const Spot& spot) {
  const Term& term = spot.term();
  for (const Dim& guard : term.guards) {
    if (!spot.arithmetic.has_negation(term.guards, guard) && (-guard).least().value_or(-1) < 0)
      continue;
    for (std::size_t i = 0; i < term.bound.size(); ++i) {
      const auto value = zero_of(guard, term.bound[i]);
      if (value && spot.take({.kind = Kind::Solve, .item = i, .dims = {*value}})) return true;
    }
  }
  return false;
}

bool shift(const Spot& spot) {
  const Term& term = spot.term();
  for (std::size_t k = 0; k < term.guards.size(); ++k) {
    const std::size_t premise = spot.site.own + k;
    for (std::size_t i = 0; i < term.bound.size(); ++i) {
      if (!term.guards[k].contains(term.bound[i])) continue;
      const auto linear = term.guards[k].linear_in(term.bound[i]);
      if (!linear || !linear->factor.is(1)) continue;
      const Dim least = -linear->rest;
      // Worth it if this is the only lower limit, or the strongest.
      if (!spot.arithmetic.reason_for(least, {.list = spot.site.premises, .without = premise}))
        continue;
      if (spot.take({.kind = Kind::Shift,
                     .item = i,
                     .dims = {least},
                     .reasons = {Reason{.multiples = {{premise, Dim(1)}}}}}))
        return true;
    }
  }
  return false;
}

namespace {

/// How positions change with a variable: by the name of the tensor that is read, whether they grow
/// and whether they fall.
struct Slopes {
  bool grows = false, falls = false;
};
void collect_slopes(const Term& term, const std::string& name,
                    std::map<std::string, Slopes>& into) {
  for (const Factor& factor : term.factors) {
    for (const Dim& at : factor.at) {
      const auto linear = at.contains(name) ? at.linear_in(name) : std::nullopt;
      if (!linear || !linear->factor.constant()) continue;
      Slopes& slopes = into[factor.name];
      (*linear->factor.constant() > 0 ? slopes.grows : slopes.falls) = true;
    }
    if (factor.args == nullptr) continue;
    for (const algebra::Sum& arg : *factor.args)
      for (const Term& inner : arg.terms) collect_slopes(inner, name, into);
  }
}

}  // namespace

bool reverse(const Spot& spot) {
  const Term& term = spot.term();
  for (std::size_t i = 0; i < term.bound.size(); ++i) {
    const std::string& name = term.bound[i];
    std::map<std::string, Slopes> slopes;
    collect_slopes(term, name, slopes);
    if (slopes.empty() || slopes.begin()->second.grows) continue;
    std::optional<Dim> last;  // the plainest of its limits
    for (const Dim& guard : term.guards) {
      const auto linear = guard.contains(name) ? guard.linear_in(name) : std::nullopt;
      if (!linear || !linear->factor.is(-1)) continue;
      const Dim& limit = linear->rest;
      const auto size = [](const Dim& dim) { return dim.parts().size(); };
      if (!last || size(limit) < size(*last) || (size(limit) == size(*last) && limit < *last))
        last = limit;
    }
    if (last && spot.take({.kind = Kind::Reverse, .item = i, .dims = {*last}})) return true;
  }
  return false;
}

bool peel(const Spot& spot) {
  const std::vector<Dim>& guards = spot.term().guards;
  const Dim k = Dim::symbol(std::string(algebra::kStep));
  for (const std::string& name : spot.term().bound) {
    const Dim rest = k - Dim::symbol(name);
    if (!has(guards, rest) || has(guards, -rest) || has(guards, rest - 1)) continue;
    if (spot.take({.kind = Kind::Split, .dims = {rest - 1}})) return true;
  }
  return false;
}

bool drop(const Spot& spot) {
  for (std::size_t k = 0; k < spot.term().guards.size(); ++k) {
    const auto reason = spot.arithmetic.reason_for(
        spot.term().guards[k], {.list = spot.site.premises, .without = spot.site.own + k});
    if (reason && spot.take({.kind = Kind::Drop, .item = k, .reasons = {*reason}})) return true;
  }
  return false;
}

bool count(const Spot& spot) {
  const Term& term = spot.term();
  for (std::size_t i = 0; i < term.bound.size(); ++i) {
    const std::string& name = term.bound[i];
    if (is_spoken_of(term, name)) continue;
    const Dim variable = Dim::symbol(name);
    std::vector<Dim> limits;
    for (const Dim& guard : term.guards)
      if (guard.contains(name)) limits.push_back(guard + variable);
    if (limits.size() != 1 || limits[0].contains(name)) continue;
    const Dim needed = spot.site.in == State::Site::In::Most ? limits[0] : limits[0] + 1;
    // Existence of a value does not follow from premises about its values.
    const auto reason =
        spot.arithmetic.reason_for(needed, {.list = spot.site.premises, .avoiding = &variable});
    if (reason && spot.take({.kind = Kind::Count, .item = i, .reasons = {*reason}})) return true;
  }
  return false;
}

bool attain(const Spot& spot) {
  const Term& term = spot.term();
  if (spot.site.in != State::Site::In::Most || term.bound.empty()) return false;
  for (const std::string& name : term.bound)
    if (contains(term.factors[0], name)) return false;
  return Attainment(spot).take();
}

namespace {

/// A position that two guards say is another: that with the smaller name is kept.
bool unify(const Spot& spot) {
  const Term& term = spot.term();
  for (const Dim& guard : term.guards) {
    if (std::ranges::find(term.guards, -guard) == term.guards.end()) continue;
    std::set<std::string> symbols;
    guard.collect_symbols(symbols);
    const auto last = std::ranges::find_if(
        symbols.rbegin(), symbols.rend(), [](const std::string& s) { return s.starts_with("%i"); });
    if (last == symbols.rend() || !is_spoken_of(term, *last)) continue;
    const Dim variable = Dim::symbol(*last);
    for (const Dim& other : {variable - guard, variable + guard}) {
      const auto name = other.as_symbol();
      if (!name || !name->starts_with("%i") || *name >= *last) continue;
      const auto low = spot.reason_for(variable - other), high = spot.reason_for(other - variable);
      if (low && high)
        return spot.take({.kind = Kind::Pin, .dims = {variable, other}, .reasons = {*low, *high}});
    }
  }
  return false;
}

}  // namespace

bool pin(const Spot& spot) {
  if (unify(spot)) return true;
  const Term& term = spot.term();
  std::set<std::string> symbols;
  for (const Dim& guard : term.guards) guard.collect_symbols(symbols);
  for (const std::string& name : symbols) {
    if (!name.starts_with("%i")) continue;
    const Dim variable = Dim::symbol(name);
    Dim least = 0;
    for (const Dim& premise : spot.site.premises)
      if (const auto value =
              premise.contains(name) ? (variable - premise).constant() : std::nullopt;
          value && *value > 0)
        least = std::max(least, Dim(*value));
    // It has to be spoken of beyond the guards that pin it down.
    const bool elsewhere =
        is_spoken_of(term, name) || std::ranges::any_of(term.guards, [&](const Dim& guard) {
          return guard.contains(name) && guard != variable - least && guard != least - variable;
        });
    if (!elsewhere) continue;
    const auto high = spot.reason_for(least - variable), low = spot.reason_for(variable - least);
    if (!high || !low) continue;
    return spot.take({.kind = Kind::Pin, .dims = {variable, least}, .reasons = {*low, *high}});
  }
  return false;
}

bool tighten(const Spot& spot) {
  for (std::size_t k = 0; k < spot.term().guards.size(); ++k) {
    const Dim& guard = spot.term().guards[k];
    for (const Dim& shorter : shorter_guards(guard, spot.site)) {
      const auto follows = spot.reason_for(shorter);
      if (!follows) continue;
      std::vector<Dim> others = spot.site.premises;
      others[spot.site.own + k] = shorter;
      const auto back = spot.arithmetic.reason_for(guard, {.list = others});
      if (!back) continue;
      return spot.take(
          {.kind = Kind::Tighten, .item = k, .dims = {shorter}, .reasons = {*follows, *back}});
    }
  }
  return false;
}

}  // namespace tessera::prove
