#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "tessera/rules/rule.h"
#include "tessera/superopt/generate/candidates.h"

namespace tessera::superopt {

/// Options of generate().
struct GenerateOptions {
  int max_ops = 3;
  int threads = 1;
  std::int64_t memory_limit = std::int64_t{12} << 30;
  const std::atomic<bool>* stop = nullptr;
  std::filesystem::path checkpoint = {};  // log of decisions; none if empty
  bool resume = false;                    // reuse the decisions of an earlier run
  std::function<void(std::string_view stage, std::size_t done, std::size_t all)> progress = {};
};

/// Generated rules with statistics.
struct GenerateResult {
  std::vector<rules::Rule> rules;  // proved rules, small ones first
  std::size_t graphs = 0;          // connected graphs, distinct up to names and order
  CandidateCounts counts;
  std::size_t derivable = 0;  // pairs that follow from smaller ones
  std::size_t candidates = 0, proved = 0, refuted = 0, unknown = 0, trivial = 0;
  double enumeration_seconds = 0, proof_seconds = 0;
  bool stopped = false;  // cancelled before all candidates were decided
};

/// Generates rewrite rules: enumerates all terms over an operator set up to a number of operators,
/// pairs those with equal fingerprints, and proves the pairs for all sizes. Deterministic for any
/// number of threads and with resumption.
Expected<GenerateResult> generate(const OperatorSet& set, const GenerateOptions& options);

}  // namespace tessera::superopt
