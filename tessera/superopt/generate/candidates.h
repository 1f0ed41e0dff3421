#pragma once

#include <vector>

#include "tessera/superopt/generate/enumerate.h"

namespace tessera::superopt {

/// Conjectured rule: terms whose fingerprints equal those of other terms, output by output.
struct Candidate {
  std::vector<NamedTerm> source, target;
  bool both_ways = false;  // bidirectional: both sides have the same variables
};

/// Statistics of pairing terms.
struct CandidateCounts {
  std::size_t classes = 0;     // classes of equal fingerprints, up to renaming
  std::size_t pairs = 0;       // pairs, n - 1 for a class of n terms
  std::size_t congruent = 0;   // dropped: equal by congruence of their arguments
  std::size_t coincident = 0;  // dropped: differ in another field and on other sizes
  std::size_t common = 0;      // dropped: hold for any value of a common subterm
  std::size_t renamed =
      0;  // dropped: instances of others, with variables unified or of another kind
};

/// Pairs a representative of each class with its other members, without instances of smaller
/// candidates: sorted by size, rules of two outputs last.
std::vector<Candidate> candidates(const Enumeration& made, const EnumerateOptions& options,
                                  CandidateCounts& counts);

/// Variables of terms in order of first occurrence.
std::vector<std::uint8_t> variables_of(const Terms& terms, const std::vector<NamedTerm>& outputs);

}  // namespace tessera::superopt
