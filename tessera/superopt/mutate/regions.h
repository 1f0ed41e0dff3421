#pragma once

#include <atomic>
#include <cstdint>

#include "tessera/expr/condition.h"
#include "tessera/prove/verdict.h"
#include "tessera/rules/rule.h"

namespace tessera::superopt {

/// Where a mutant differs from its source, for all sizes.
struct MutantRegion {
  Graph source, mutant;  // with the sizes that make them fit together
  rules::Region wrong;   // none: fully equivalent
  Guard guard;           // what has to hold of the sizes
  Guard order;           // of the borders: holds where no two of them meet
  double agreement = 1;  // share of equal positions, at the largest sizes that were tried
};

struct RegionOptions {
  std::uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;
};

/// Finds the region in which two graphs with the same inputs differ, as boxes whose borders are
/// linear in the sizes. The borders are read off from evaluations at several sizes; that the graphs
/// are equal elsewhere, for all sizes, is for `corrected_rule` to prove. A diagnostic where the
/// differences are not boxes of this kind.
Expected<MutantRegion> region_of(const Graph& source, const Graph& mutant,
                                 const RegionOptions& options);

/// A rule whose target is the corrected mutant, and the proof that it is equal to the source.
struct CorrectedRule {
  rules::Rule rule;
  prove::Verdict verdict = prove::Unknown{};
};
Expected<CorrectedRule> corrected_rule(const MutantRegion& region, const RegionOptions& options);

}  // namespace tessera::superopt
