#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tessera/expr/algebra.h"

namespace tessera::algebra {

/// Symbol of the induction variable k >= 1: the number of groups that have been folded, in
/// obligations of the induction step.
inline constexpr std::string_view kStep = "%k";

/// Proof by induction that a fold has a closed form H: after k groups its value is H(k). H is
/// guessed from how the fold combines: a maximum, a sum, or a sum whose terms are rescaled when
/// others come in. The guess need not be trusted: the fold is H if the obligations hold.
struct Induction {
  Sum closed_form = {};
  Dim last = 0;  // last position of the fold: not negative, so that the fold is not empty
  struct Obligation {
    Sum from, to;  // have to be equal
    bool first;    // base case (the first group); else the step after `kStep` groups
  };
  std::vector<Obligation> obligations = {};
};

/// Induction for a fold over one axis; nothing where it runs over several.
std::optional<Induction> induction_of(Names& names, const Factor& fold);

}  // namespace tessera::algebra
