#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "tessera/cost/model.h"
#include "tessera/rules/rule.h"

namespace tessera::search {

/// A partially equivalent rewrite on its own, where it does best in a graph: times of what it
/// replaces, of the mutant and of the corrected mutant. Epilogues around it are left out.
struct MutantTrial {
  std::string rule, where;                   // name of the first value that would be replaced
  std::size_t places = 0;                    // where the rule applies
  double before = 0, mutant = 0, after = 0;  // seconds; `mutant` is without the correction
  bool measured = false;                     // all kernels were measured; else by the cost model
  std::string region = {};                   // that is corrected, in words; empty: none

  /// Share of the correction in the time of the corrected mutant.
  double correction_share() const {
    return after > mutant && after > 0 ? (after - mutant) / after : 0;
  }
};

/// Options of try_mutants.
struct TrialOptions {
  double seconds = 20;  // for measurements; the rest are estimates
  /// Seconds of a whole graph, for cost models that measure no kernels; a graph that it gives no
  /// time for is estimated.
  std::function<Expected<double>(const Graph&)> time_graph = {};
  const std::atomic<bool>* stop = nullptr;
};

/// Trials of all mutants that apply to a graph, the best first. Rules that `help mutants` are
/// applied where they let one match. Needs: static sizes.
Expected<std::vector<MutantTrial>> try_mutants(const Graph& graph,
                                               const std::vector<rules::Rule>& mutants,
                                               const std::vector<rules::Rule>& exposing,
                                               cost::Model& model, const TrialOptions& options);

}  // namespace tessera::search
