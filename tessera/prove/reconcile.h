#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tessera/certify/check.h"
#include "tessera/prove/reasons.h"

namespace tessera::prove {

/// Whether a sum has an equal term.
bool contains_term(const algebra::Sum& sum, const algebra::Term& term);

/// Term of one side of a goal that the other side does not have, in closed form.
struct UnmatchedTerm {
  std::size_t index;  // in its side
  algebra::Term term;
};
std::vector<UnmatchedTerm> unmatched_terms(const certify::State& state, int side);

/// Case distinction: splits one unmatched term by a guard, a range or a stride of an unmatched term
/// of the other side, by a step that is given to `apply`. Returns the side that it changed, if it
/// did.
std::optional<int> split_unmatched(const certify::State& state, Arithmetic& arithmetic,
                                   const std::function<bool(certify::Step)>& apply);

}  // namespace tessera::prove
