#pragma once

#include "tessera/egraph/saturate.h"
#include "tessera/search/backtrack.h"

namespace tessera::search {

/// Search by equality saturation (Tate et al., POPL 2009; Yang et al., Tensat, MLSys 2021): applies
/// all rules at once to an e-graph, and extracts a graph.
///
/// The first extraction minimizes the sum of node weights, where a shared node counts once and
/// graphs are acyclic. A local search then changes choices one by one as long as the cost model,
/// which accounts for fusion, improves.
class SaturationSearch {
 public:
  /// Uses both the choice and the normalization rules of `moves`.
  explicit SaturationSearch(const RewriteMoves& moves);

  /// Returns the best extracted graph, if there is one besides `from`. Steps are cost queries.
  Expected<SearchOutcome> run(const Graph& from, cost::Model& model, const Limits& limits);

 private:
  const RewriteMoves& moves_;
  egraph::Rewrites rewrites_;
};

}  // namespace tessera::search
