#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "tessera/superopt/generate/opset.h"
#include "tessera/superopt/mutate/regions.h"

namespace tessera::superopt {

/// Options of find_mutants().
struct MutantOptions {
  int max_ops = 3;
  int threads = 1;
  double least_agreement = 0.5;  // share of equal positions below which a mutant is dropped
  std::int64_t memory_limit = std::int64_t{12} << 30;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::string_view stage, std::size_t done, std::size_t all)> progress = {};
};

/// Mutant whose region was found.
struct FoundMutant {
  CorrectedRule corrected = {};
  double agreement = 1;
  double region_seconds = 0, proof_seconds = 0;
};

/// Mutants over an operator set, with statistics.
struct MutantResult {
  std::vector<FoundMutant> mutants;  // proved ones first, small ones first
  std::size_t graphs = 0;            // enumerated terms
  std::size_t sources = 0;           // programs without data movement beyond concatenation
  std::size_t compared = 0;          // pairs with the same shape and inputs
  std::size_t candidates = 0;        // pairs that agree in enough positions, after pruning
  std::size_t without_region = 0;    // differences that are no boxes with linear borders
  double enumeration_seconds = 0, seconds = 0;
};

/// Finds mutants: enumerates all programs over an operator set, and pairs each multi-linear one
/// with those of the same output shape and inputs that agree with it in most positions of a prime
/// field, equal ones among them. A mutant has no more contractions than its source. The region of
/// each is derived for all sizes, and the corrected program proved. Deterministic.
Expected<MutantResult> find_mutants(const OperatorSet& set, const MutantOptions& options);

}  // namespace tessera::superopt
