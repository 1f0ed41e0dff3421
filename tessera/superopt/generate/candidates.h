#pragma once

#include <vector>

#include "tessera/superopt/generate/enumerate.h"

namespace tessera::superopt {

/// Terms that look equal to others, output by output: a rule, if it can be proved.
struct Candidate {
  std::vector<Named> source, target;
  bool both_ways = false;  // each side has all the variables of the other
};

struct CandidateCounts {
  std::size_t classes = 0;     // of terms that look equal, up to names
  std::size_t pairs = 0;       // a class of n terms has n - 1
  std::size_t congruent = 0;   // of these: equal as their arguments are
  std::size_t coincident = 0;  // differ in another field and on other sizes
  std::size_t common = 0;      // hold whatever a common part is
  std::size_t renamed = 0;     // are others with some variables equal, or of another kind
};

/// What a term of each class and its other members make, without what follows from smaller ones:
/// sorted by size, and rules of two outputs last.
std::vector<Candidate> candidates(const Enumeration& made, const EnumerateOptions& options,
                                  CandidateCounts& counts);

/// The variables of terms, in the order in which they are met.
std::vector<std::uint8_t> variables_of(const Terms& terms, const std::vector<Named>& outputs);

}  // namespace tessera::superopt
