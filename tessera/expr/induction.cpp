#include "tessera/expr/induction.h"

#include <algorithm>

#include <fmt/format.h>

namespace tessera::algebra {

std::optional<Induction> induction_of(Names& names, const Factor& fold) {
  const Term& range = (*fold.args)[0].terms[0];
  const std::size_t components = range.factors.size();
  if (range.bound.size() != 1 || range.guards.size() != 1) return std::nullopt;
  const std::string& name = range.bound[0];
  const Dim last = range.guards[0] + Dim::symbol(name);
  if (last.contains(name)) return std::nullopt;
  const auto lift = [&](std::size_t c, const Dim& at) {
    const Sum& value = (*range.factors[c].args)[0];
    Sum result;
    for (const Term& term : opened(names, value).terms)
      result = add(std::move(result), substituted(names, term, {{name, at}}));
    return result;
  };
  const auto init = [&](std::size_t c) { return opened(names, (*fold.args)[1 + c]); };
  const auto combine = [&](std::size_t c) -> const Sum& {
    return (*fold.args)[1 + components + c];
  };
  const auto partial = [](char side, std::size_t c) {
    return Factor{.kind = Factor::Kind::Read, .name = fmt::format("%{}{}", side, c)};
  };
  const auto combined = [&](const Sum& by, const std::vector<Sum>& left,
                            const std::vector<Sum>& right) {
    return changed(names, by, {.factors = [&](const Factor& f) -> std::optional<Sum> {
                     if (f.kind != Factor::Kind::Read) return std::nullopt;
                     for (std::size_t c = 0; c < components; ++c) {
                       if (f.name == partial('L', c).name)
                         return power(names, opened(names, left[c]), f.exponent);
                       if (f.name == partial('R', c).name)
                         return power(names, opened(names, right[c]), f.exponent);
                     }
                     return std::nullopt;
                   }});
  };
  // H(k) of all components; maxima and sums first, because the rescaled ones refer to them.
  const auto forms = [&](const Dim& count) {
    std::vector<Sum> result(components);
    const std::string v = names.fresh();
    const Term run{.bound = {v}, .guards = {count - 1 - Dim::symbol(v)}};
    for (std::size_t c = 0; c < components; ++c) {
      const Sum both =
          most(names, {group(factor(partial('L', c))), group(factor(partial('R', c)))});
      if (!same(closed(both), combine(c))) continue;
      Term piece = group(lift(c, Dim::symbol(v)));
      piece.bound = run.bound;
      piece.guards = run.guards;
      result[c] = most(names, {std::move(piece)});
    }
    for (std::size_t c = 0; c < components; ++c) {
      if (!result[c].terms.empty()) continue;
      Sum weight;
      for (Term term : combine(c).terms) {
        const auto left = std::ranges::find_if(
            term.factors, [&](const Factor& f) { return compare(f, partial('L', c)) == 0; });
        if (left == term.factors.end()) continue;
        term.factors.erase(left);
        weight.terms.push_back(std::move(term));
      }
      const Sum scaled =
          changed(names, weight, {.factors = [&](const Factor& f) -> std::optional<Sum> {
                    for (std::size_t d = 0; d < components; ++d) {
                      const Sum& whole = combine(d);
                      if (whole.terms.size() == 1 && whole.terms[0].factors.size() == 1 &&
                          compare(whole.terms[0].factors[0], f) == 0)
                        return opened(names, result[d]);
                      if (compare(f, partial('L', d)) == 0) return lift(d, Dim::symbol(v));
                    }
                    return std::nullopt;
                  }});
      result[c] = product(names, {{run}}, product(names, lift(c, Dim::symbol(v)), scaled));
    }
    return result;
  };
  std::vector<Sum> inits, first, next;
  const Dim k = Dim::symbol(std::string(kStep));
  for (std::size_t c = 0; c < components; ++c) {
    inits.push_back(init(c));
    first.push_back(lift(c, 0));
    next.push_back(lift(c, k));
  }
  const std::vector<Sum> one = forms(1), some = forms(k), more = forms(k + 1);
  Induction result{.closed_form = forms(last + 1)[static_cast<std::size_t>(fold.component)],
                   .last = last};
  for (std::size_t c = 0; c < components; ++c) {
    result.obligations.push_back({combined(combine(c), inits, first), one[c], true});
    result.obligations.push_back({combined(combine(c), some, next), more[c], false});
  }
  return result;
}

}  // namespace tessera::algebra
