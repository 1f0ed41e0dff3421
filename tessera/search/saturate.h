#pragma once

#include "tessera/egraph/saturate.h"
#include "tessera/search/backtrack.h"

namespace tessera::search {

/// Equality saturation (Tate et al., POPL 2009; Yang et al., Tensat, MLSys
/// 2021): all rules are applied at once to an e-graph, and a graph is taken out
/// of it.
///
/// What is taken out first is the least by the work of single nodes, where a
/// node that is needed twice counts once and no value depends on itself. Then
/// choices are changed one by one as long as the cost model, which sees what is
/// computed together, says that it helps.
class Saturating {
 public:
  /// Of the rules, those that the moves choose from and those that are always
  /// applied.
  explicit Saturating(const Moves& moves);

  /// The best graph that was found, if there is one besides the one that was
  /// given. Steps are graphs whose cost is asked for.
  Expected<Tree> run(const Graph& from, cost::Model& model, const Limits& limits);

 private:
  const Moves& moves_;
  egraph::Rewrites rewrites_;
};

}  // namespace tessera::search
