#include "tessera/prove/reconcile.h"

#include <algorithm>
#include <array>
#include <map>

#include "tessera/prove/guards.h"
#include "tessera/prove/operations.h"

namespace tessera::prove {
namespace {

using algebra::closed;
using algebra::Factor;
using algebra::Sum;
using algebra::Term;
using certify::Kind;

/// Ways to split an unmatched term.
class TermSplitter {
 public:
  TermSplitter(const certify::State& state, Arithmetic& arithmetic,
               const std::function<bool(certify::Step)>& apply)
      : state_(state), arithmetic_(arithmetic), apply_(apply) {}

  std::optional<int> run() {
    constexpr std::size_t kMostLeft = 12;  // more than that is another sum, not other cases
    const std::array left{unmatched_terms(state_, 0), unmatched_terms(state_, 1)};
    if (left[0].size() > kMostLeft || left[1].size() > kMostLeft) return std::nullopt;
    for (int side : {0, 1})
      for (const UnmatchedTerm& own : left[side])
        for (const UnmatchedTerm& other : left[1 - side])
          if (split(side, own, other.term)) return side;
    for (int side : {0, 1})
      for (const UnmatchedTerm& own : left[side])
        if (split_first(side, own, left[1 - side])) return side;
    for (int side : {0, 1})
      for (const UnmatchedTerm& own : left[side])
        if (divide_range(side, own.index, left[1 - side])) return side;
    for (int side : {0, 1})
      for (const UnmatchedTerm& own : left[side])
        if (split_range(side, own.index, left[1 - side])) return side;
    return std::nullopt;
  }

 private:
  bool split(int side, const UnmatchedTerm& own, const Term& other) {
    if (own.term.bound.size() != other.bound.size()) return false;
    for (const Dim& guard : other.guards) {
      if (std::ranges::find(own.term.guards, guard) != own.term.guards.end()) continue;
      // Only where nothing bound is spoken of, the guard means the same on the other side.
      if (speaks_of_any(guard, other.bound) || !guard.operations().empty()) continue;
      const auto site = state_.site(side, {own.index});
      if (!site || arithmetic_.reason_for(guard, {.list = site->premises}) ||
          arithmetic_.reason_for(-guard - 1, {.list = site->premises}))
        continue;
      if (apply_({.kind = Kind::Split, .side = side, .place = {own.index}, .dims = {guard}}))
        return true;
    }
    return false;
  }

  /// What the bound variables of a term may be at most, where a guard says `most - name >= 0`.
  static std::vector<std::pair<std::string, Dim>> ends(const Term& term) {
    std::vector<std::pair<std::string, Dim>> result;
    for (const std::string& name : term.bound)
      for (const Dim& guard : term.guards) {
        const auto linear = guard.contains(name) ? guard.linear_in(name) : std::nullopt;
        if (linear && linear->factor.is(-1) && !speaks_of_any(linear->rest, term.bound))
          result.emplace_back(name, linear->rest);
      }
    return result;
  }

  /// Splits the range of a bound variable where one of the other side ends: a window of five is
  /// one of three and one of two. The longest of the shorter ranges is tried.
  bool split_range(int side, std::size_t index, const std::vector<UnmatchedTerm>& others) {
    const auto site = state_.site(side, {index});
    if (!site) return false;
    std::optional<Dim> first, rest;  // the guard of the first part, how long the rest is
    for (const auto& [name, end] : ends(*site->term))
      for (const UnmatchedTerm& other : others)
        for (const auto& [their_name, their_end] : ends(other.term)) {
          const Dim longer = end - their_end;
          if (rest && (*rest - longer).least().value_or(0) <= 0) continue;
          // The rest may be empty where the other range is another one at every position.
          const Dim least = their_end.constant() || end.constant() ? longer - 1 : longer;
          if (longer.is(0) || !arithmetic_.reason_for(least, {.list = site->premises})) continue;
          first = their_end - Dim::symbol(name);
          rest = longer;
        }
    return first && apply_({.kind = Kind::Split, .side = side, .place = {index}, .dims = {*first}});
  }

  /// Takes off the first value of a variable where that is a term of the other side.
  bool split_first(int side, const UnmatchedTerm& own, const std::vector<UnmatchedTerm>& others) {
    if (own.term.bound.size() != 1) return false;
    algebra::Names names;
    const std::string& name = own.term.bound[0];
    Term first = own.term;
    first.bound.clear();
    std::erase_if(first.guards, [&](const Dim& guard) { return guard.contains(name); });
    const Sum at_zero = closed(substituted(names, first, {{name, Dim(0)}}));
    if (at_zero.terms.size() != 1) return false;
    const auto& real = state_.side(side).terms[own.index];
    return std::ranges::any_of(others,
                               [&](const UnmatchedTerm& other) {
                                 Term term = other.term;
                                 std::erase_if(term.guards, [](const Dim&) { return true; });
                                 return other.term.bound.empty() &&
                                        compare(term, at_zero.terms[0]) == 0;
                               }) &&
           apply_({.kind = Kind::Split,
                   .side = side,
                   .place = {own.index},
                   .dims = {-Dim::symbol(real.bound[0])}});
  }

  /// By how much a position of a tensor grows with the bound variables of a term: steps above 1.
  static void collect_strides(const Term& term, std::map<std::string, std::int64_t>& into) {
    for (const Factor& factor : term.factors)
      for (const Dim& at : factor.at)
        for (const std::string& name : term.bound) {
          const auto linear = at.contains(name) ? at.linear_in(name) : std::nullopt;
          const auto step = linear ? linear->factor.constant() : std::nullopt;
          if (step && *step > 1) into.emplace(factor.name, *step);
        }
  }

  /// A variable that runs through a tensor of which the other side reads every second element is
  /// a multiple of two and a rest.
  bool divide_range(int side, std::size_t index, const std::vector<UnmatchedTerm>& others) {
    constexpr std::int64_t kLargestStride = 8;
    const auto site = state_.site(side, {index});
    std::map<std::string, std::int64_t> strides, own;
    for (const UnmatchedTerm& other : others) collect_strides(other.term, strides);
    if (!site || strides.empty()) return false;
    collect_strides(*site->term, own);
    const Term& term = *site->term;
    for (const Factor& factor : term.factors) {
      const auto stride = strides.find(factor.name);
      if (stride == strides.end() || own.contains(factor.name) || stride->second > kLargestStride)
        continue;
      for (std::size_t i = 0; i < term.bound.size(); ++i)
        if (std::ranges::any_of(factor.at,
                                [&](const Dim& at) { return at.contains(term.bound[i]); }) &&
            std::ranges::any_of(ends(term), [&](const auto& end) {
              return end.first == term.bound[i] && !end.second.constant();
            }))
          return apply_({.kind = Kind::Divide,
                         .side = side,
                         .place = {index},
                         .item = i,
                         .dims = {Dim(stride->second)},
                         .reasons = {certify::Reason{}}});
    }
    return false;
  }

  const certify::State& state_;
  Arithmetic& arithmetic_;
  const std::function<bool(certify::Step)>& apply_;
};

}  // namespace

bool contains_term(const Sum& sum, const Term& term) {
  return std::ranges::any_of(sum.terms, [&](const Term& t) { return compare(t, term) == 0; });
}

std::vector<UnmatchedTerm> unmatched_terms(const certify::State& state, int side) {
  const Sum others = closed(state.side(1 - side));
  std::vector<UnmatchedTerm> result;
  for (std::size_t i = 0; i < state.side(side).terms.size(); ++i) {
    Sum one = closed({{state.side(side).terms[i]}});
    if (!one.terms.empty() && !contains_term(others, one.terms[0]))
      result.push_back({i, std::move(one.terms[0])});
  }
  return result;
}

std::optional<int> split_unmatched(const certify::State& state, Arithmetic& arithmetic,
                                   const std::function<bool(certify::Step)>& apply) {
  return TermSplitter(state, arithmetic, apply).run();
}

}  // namespace tessera::prove
