#pragma once

#include <set>
#include <vector>

#include "tessera/superopt/generate/candidates.h"

namespace tessera::superopt {

/// Which candidates do not follow from smaller ones: by a step at the root of either side, and from
/// equations between smaller terms inside. Goes through them in order; those that are `excluded`
/// (as they could not be proved) are neither kept nor used. Gives their numbers.
std::vector<std::size_t> underivable(const Enumeration& made, const std::vector<Candidate>& all,
                                     const std::set<std::size_t>& excluded,
                                     const EnumerateOptions& options);

}  // namespace tessera::superopt
