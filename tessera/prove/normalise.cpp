#include "tessera/prove/normalise.h"

#include <algorithm>

#include "tessera/prove/guards.h"
#include "tessera/prove/operations.h"
#include "tessera/prove/reconcile.h"

namespace tessera::prove {
namespace {

using algebra::closed;
using algebra::Factor;
using algebra::Sum;
using algebra::Term;
using certify::Kind;
using certify::State;
using certify::Step;

using Place = std::vector<std::size_t>;

/// Proof search for one goal: normalizes both sides step by step, then reconciles what differs by
/// case distinctions.
class Normaliser {
 public:
  Normaliser(State& state, certify::Proof& proof, const Limits& limits, Arithmetic& arithmetic)
      : state_(state), proof_(proof), limits_(limits), arithmetic_(arithmetic) {}

  bool run(std::string& why) {
    // A position that is taken apart is so in all terms, also in those that were done.
    do {
      divided_ = false;
      for (int side : {0, 1}) sweep(side);
    } while (divided_ && !given_up_);
    if (given_up_ || is_proved()) return ended(why);
    while (!given_up_ && limits_.reconciles && !state_.is_same())
      if (!reconcile()) break;
    if (given_up_ || is_proved()) return ended(why);
    if (limits_.reconciles && enumerate()) return true;
    if (limits_.reconciles && limits_.cases > 0 && end_by_cases()) return true;
    if (limits_.reconciles && limits_.signs > 0 && end_by_signs()) return true;
    return ended(why);
  }

 private:
  /// The state is looked at once, until it changes.
  bool is_proved() {
    if (looked_at_ != steps_) proved_ = state_.is_proved();
    looked_at_ = steps_;
    return proved_;
  }

  bool ended(std::string& why) {
    if (!given_up_ && is_proved()) return true;
    if (limits_.explains) why = given_up_ ? why_ : left_over();
    return false;
  }

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
    if (step.kind == Kind::Split && !enumerates_ && ++splits_ > kMostSplits)
      return give_up("there are too many cases");
    if (auto done = state_.apply(step); !done) return false;
    if (step.kind == Kind::Divide && step.place.empty()) {
      seen_.clear();
      divided_ = true;
    }
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
    const Spot spot{state_, *site, side, place, arithmetic_, apply_};
    const bool folded = site->in == State::Site::In::Fold;
    const bool fresh = unchecked(side, place, *site);
    if (!folded) {
      if (fresh && remove_void(spot)) return true;
      if (unfold(spot) || solve(spot)) return true;
      if (simplify_operations(spot) || shift(spot) || peel(spot)) return true;
    }
    // What a maximum is taken of may cease to hang on its variables while the guards stay.
    if (site->in == State::Site::In::Most && (count(spot) || attain(spot))) return true;
    if (fresh) {
      if (drop(spot)) return true;
      if (!folded && (count(spot) || attain(spot) || pin(spot) || tighten(spot))) return true;
      remember(side, place, *site);
    }
    if (!folded && !site->term->bound.empty() && reverse(spot)) return true;
    return inside(spot);
  }

  // Guards are looked at once, until they change.
  using Seen = std::pair<std::vector<Dim>, std::size_t>;
  bool unchecked(int side, const Place& place, const State::Site& site) const {
    const auto here = seen_.find({side, place});
    return here == seen_.end() || here->second.second != site.own ||
           here->second.first != site.premises;
  }
  void remember(int side, const Place& place, const State::Site& site) {
    seen_.insert_or_assign({side, place}, Seen(site.premises, site.own));
  }

  bool unfold(const Spot& spot) {
    for (std::size_t i = 0; i < spot.term().factors.size(); ++i) {
      const Factor& factor = spot.term().factors[i];
      if (factor.kind == Factor::Kind::Read && state_.is_computed(factor.name) &&
          !(limits_.keeps && limits_.keeps(factor.name)))
        return spot.take({.kind = Kind::Unfold, .item = i});
      if (factor.kind == Factor::Kind::Fold && induct(spot, i)) return true;
    }
    return false;
  }

  bool induct(const Spot& spot, std::size_t factor) {
    auto induction = state_.induction(spot.site, factor);
    if (!induction) return false;
    const auto reason = spot.reason_for(induction->last);
    if (!reason) return false;
    Step step{.kind = Kind::Induct, .item = factor, .reasons = {*reason}};
    for (State& obligation : induction->obligations) {
      certify::Proof part;
      std::string why;
      if (!settle(obligation, part, limits_, arithmetic_, why)) return false;
      step.parts.push_back(std::move(part));
    }
    return spot.take(std::move(step));
  }

  /// Steps in the arguments of functions, then splits by what they distinguish.
  bool inside(const Spot& spot) {
    const Term& term = spot.term();  // stays as long as no step is taken
    for (std::size_t f = 0; f < term.factors.size(); ++f) {
      if (term.factors[f].args == nullptr) continue;
      for (std::size_t a = 0; a < term.factors[f].args->size(); ++a) {
        for (std::size_t t = 0; t < (*term.factors[f].args)[a].terms.size(); ++t) {
          Place place = spot.place;
          place.insert(place.end(), {f, a, t});
          if (improve(spot.side, place)) return true;
        }
      }
    }
    for (const Factor& factor : term.factors) {
      if (factor.args == nullptr || factor.kind == Factor::Kind::Fold) continue;
      for (const Sum& arg : *factor.args)
        for (const Term& inner : arg.terms)
          for (const Dim& guard : inner.guards)
            if (!speaks_of_any(guard, inner.bound))
              return spot.take({.kind = Kind::Split, .dims = {guard}});
    }
    return false;
  }

  /// Splits a term that only one side has, by the cases of the other side.
  bool reconcile() {
    constexpr int kMostRounds = 16;
    if (++reconciled_ > kMostRounds) return false;
    const auto side = split_unmatched(state_, arithmetic_, apply_);
    return side && sweep(*side);
  }

  /// Takes the first value of a variable with few values for itself, in a term or inside of it.
  bool take_first(int side, const Place& place) {
    constexpr std::int64_t kMostValues = 16;
    const auto site = state_.site(side, place);
    if (!site || site->in == State::Site::In::Fold) return false;
    const Term& term = *site->term;  // stays as long as no step is taken
    for (const std::string& name : term.bound)
      for (const Dim& guard : term.guards) {
        if (!guard.contains(name)) continue;
        const Dim last = guard + Dim::symbol(name);
        if (!last.contains(name) && !last.is(0) && !speaks_of_any(last, term.bound) &&
            arithmetic_.reason_for(Dim(kMostValues - 1) - last, {.list = site->premises}))
          return apply(
              {.kind = Kind::Split, .side = side, .place = place, .dims = {-Dim::symbol(name)}});
      }
    for (std::size_t f = 0; f < term.factors.size(); ++f) {
      if (term.factors[f].args == nullptr) continue;
      for (std::size_t a = 0; a < term.factors[f].args->size(); ++a)
        for (std::size_t t = 0; t < (*term.factors[f].args)[a].terms.size(); ++t) {
          Place inner = place;
          inner.insert(inner.end(), {f, a, t});
          if (take_first(side, inner)) return true;
        }
    }
    return false;
  }

  /// Writes out what is left over: sums and maxima over a few values.
  bool enumerate() {
    constexpr int kMostTaken = 160;
    constexpr std::size_t kMostLeft = 60;
    enumerates_ = true;
    bool any = false;
    for (int taken = 0; taken < kMostTaken && !given_up_; ++taken) {
      if (any && state_.is_same()) return true;
      constexpr int kSmall = 1024;  // each round puts both sides in order
      if (!affords(limits_, size_of_goal(state_) / kSmall)) break;
      bool found = false;
      for (const int side : {0, 1}) {
        const std::vector<UnmatchedTerm> left = unmatched_terms(state_, side);
        if (left.size() > kMostLeft) return false;
        for (const UnmatchedTerm& own : left) {
          found = take_first(side, {own.index});
          if (found) break;
        }
        if (found) {
          sweep(side);
          break;
        }
      }
      if (!found) break;
      any = true;
    }
    enumerates_ = false;
    if (!any || given_up_) return false;
    while (!given_up_ && !state_.is_same())
      if (!reconcile()) break;
    return !given_up_ && is_proved();
  }

  /// Maxima of some sums inside of a term, inner ones first.
  void collect_maxima(int side, const Place& place, std::vector<Step>& into) const {
    const auto site = state_.site(side, place);
    if (!site) return;
    for (std::size_t f = 0; f < site->term->factors.size(); ++f) {
      const Factor& factor = site->term->factors[f];
      if (factor.args == nullptr) continue;
      for (std::size_t a = 0; a < factor.args->size(); ++a)
        for (std::size_t t = 0; t < (*factor.args)[a].terms.size(); ++t) {
          Place inner = place;
          inner.insert(inner.end(), {f, a, t});
          collect_maxima(side, inner, into);
        }
      if (factor.kind == Factor::Kind::Most)
        into.push_back({.kind = Kind::Cases, .side = side, .place = place, .item = f});
    }
  }

  /// Factors of both sides.
  static int size_of_goal(const State& state) {
    constexpr std::size_t kLimit = 1 << 16;
    return static_cast<int>(size_of(state.side(0), kLimit) + size_of(state.side(1), kLimit));
  }
  /// Takes from the budget; whether that was enough.
  static bool affords(const Limits& limits, int cost) {
    return limits.budget == nullptr || (*limits.budget -= cost) >= 0;
  }

  bool prove_all(std::vector<State>& obligations, Step& step, Limits limits) {
    limits.explains = false;
    std::string why;
    return std::ranges::all_of(obligations, [&](State& obligation) {
      constexpr int kSmall = 256;  // a case of a large sum costs as much as several of small ones
      const bool late = !affords(limits, 1 + size_of_goal(obligation) / kSmall) ||
                        (limits.stop != nullptr && *limits.stop);
      return !late && settle(obligation, step.parts.emplace_back(), limits, arithmetic_, why);
    });
  }

  /// What is left over may be the same whichever of its parts a maximum is: one that both sides
  /// have, or any where one side has none.
  bool end_by_cases() {
    struct Maximum {
      Step step;
      Term term;
    };
    std::vector<Maximum> maxima[2];
    for (const int side : {0, 1}) {
      std::vector<Step> steps;
      for (const UnmatchedTerm& own : unmatched_terms(state_, side))
        collect_maxima(side, {own.index}, steps);
      for (Step& step : steps) {
        Factor factor = state_.site(side, step.place)->term->factors[step.item];
        factor.exponent = 1;
        Term term{.factors = {std::move(factor)}};
        if (std::ranges::none_of(maxima[side],
                                 [&](const Maximum& m) { return compare(m.term, term) == 0; }))
          maxima[side].push_back({std::move(step), std::move(term)});
      }
    }
    const int side = maxima[0].empty() ? 1 : 0;
    if (!maxima[1 - side].empty())
      std::erase_if(maxima[side], [&](const Maximum& own) {
        return std::ranges::none_of(maxima[1 - side], [&](const Maximum& other) {
          return compare(own.term, other.term) == 0;
        });
      });
    int tried = 0;
    for (Maximum& maximum : maxima[side]) {
      Step& step = maximum.step;
      auto obligations = state_.cases(*state_.site(side, step.place), step.item);
      constexpr int kMostTried = 3;
      if (!obligations || ++tried > kMostTried) continue;
      Limits limits = limits_;
      --limits.cases;
      limits.signs = 0;
      const bool proved = prove_all(*obligations, step, limits);
      if (proved) return apply(std::move(step));
    }
    return false;
  }

  /// Factors inside of a term whose sign, or that of what they compare, tells cases apart.
  void collect_signs(int side, const Place& place, std::vector<Step>& into) const {
    const auto site = state_.site(side, place);
    if (!site) return;
    for (std::size_t f = 0; f < site->term->factors.size(); ++f) {
      const Factor& factor = site->term->factors[f];
      if (factor.args != nullptr)
        for (std::size_t a = 0; a < factor.args->size(); ++a)
          for (std::size_t t = 0; t < (*factor.args)[a].terms.size(); ++t) {
            Place inner = place;
            inner.insert(inner.end(), {f, a, t});
            collect_signs(side, inner, into);
          }
      Step step{.kind = Kind::Signs, .side = side, .place = place, .item = f};
      if (factor.truth) into.push_back(step);
      if (factor.kind != Factor::Kind::Most) continue;
      for (std::size_t t = 0; t < (*factor.args)[0].terms.size(); ++t)
        if (const Term& piece = (*factor.args)[0].terms[t];
            piece.bound.empty() && piece.guards.empty() && step.dims.size() < 2)
          step.dims.emplace_back(static_cast<std::int64_t>(t));
      if (step.dims.size() == 2) into.push_back(std::move(step));
    }
  }

  /// What is left over may be the same whatever the sign of a sum is that is compared.
  bool end_by_signs() {
    std::vector<Step> steps;
    for (const int side : {0, 1})
      for (const UnmatchedTerm& own : unmatched_terms(state_, side))
        collect_signs(side, {own.index}, steps);
    for (Step& step : steps) {
      auto obligations = state_.signs(*state_.site(step.side, step.place), step.item, step.dims);
      if (!obligations) continue;
      Limits limits = limits_;
      limits.cases = 0;
      --limits.signs;
      return prove_all(*obligations, step, limits) && apply(std::move(step));
    }
    return false;
  }

  std::string left_over() const {
    const Sum source = closed(state_.side(0)), target = closed(state_.side(1));
    const auto beyond = [](const Sum& of, const Sum& than) {
      Sum result;
      for (const Term& term : of.terms)
        if (!contains_term(than, term)) result.terms.push_back(term);
      return to_text(result);
    };
    return fmt::format("only the source has {}; only the target has {}", beyond(source, target),
                       beyond(target, source));
  }

  State& state_;
  certify::Proof& proof_;
  const Limits& limits_;
  Arithmetic& arithmetic_;
  const std::function<bool(Step)> apply_ = [this](Step step) { return apply(std::move(step)); };
  std::map<std::pair<int, Place>, Seen> seen_;
  std::int64_t steps_ = 0, looked_at_ = -1;
  bool proved_ = false;
  int reconciled_ = 0, splits_ = 0;
  bool given_up_ = false, divided_ = false, enumerates_ = false;
  std::string why_;
};

}  // namespace

bool settle(State& state, certify::Proof& proof, const Limits& limits, Arithmetic& arithmetic,
            std::string& why) {
  return Normaliser(state, proof, limits, arithmetic).run(why);
}

}  // namespace tessera::prove
