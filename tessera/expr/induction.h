#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tessera/expr/algebra.h"

namespace tessera::algebra {

/// The number of groups that have been taken in, at least 1, in the second kind of obligation.
inline constexpr std::string_view kStep = "%k";

/// A fold takes its groups in one after the other. That after k of them it is H(k) is shown by
/// induction; what H is, is guessed from how the fold combines: a maximum, a sum, or a sum whose
/// terms are rescaled when others come in. Nothing that is guessed needs to be trusted: the fold is
/// H where the obligations hold.
struct Induction {
  Sum closed_form = {};
  Dim last = 0;  // the last position that is taken in: not negative, so that there is one
  struct Obligation {
    Sum from, to;  // have to be equal
    bool first;    // of the first group; else of the one after `kStep` others
  };
  std::vector<Obligation> obligations = {};
};

/// Nothing where the fold runs over several axes.
std::optional<Induction> induction_of(Names& names, const Factor& fold);

}  // namespace tessera::algebra
