#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/certify/check.h"
#include "tessera/prove/reasons.h"

namespace tessera::prove {

/// Place in a goal: the term at which proof steps are looked for.
struct Spot {
  const certify::State& state;
  const certify::State::Site& site;
  int side;
  const std::vector<std::size_t>& place;
  Arithmetic& arithmetic;
  /// Changes the state; false where the state refuses the step. After a change the spot is gone.
  const std::function<bool(certify::Step)>& apply;

  const algebra::Term& term() const { return *site.term; }
  /// Why this is not negative here.
  std::optional<certify::Reason> reason_for(const Dim& e) const {
    return arithmetic.reason_for(e, {.list = site.premises});
  }
  /// Applies a step to this term.
  bool take(certify::Step step) const {
    step.side = side;
    step.place = place;
    return apply(std::move(step));
  }
};

inline bool speaks_of_any(const Dim& dim, std::span<const std::string> names) {
  return std::ranges::any_of(names, [&](const std::string& name) { return dim.contains(name); });
}

}  // namespace tessera::prove
