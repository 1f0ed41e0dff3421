#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "tessera/rules/rule.h"
#include "tessera/superopt/generate/candidates.h"

namespace tessera::superopt {

struct GenerateOptions {
  int max_ops = 3;
  int threads = 1;
  std::int64_t memory_limit = std::int64_t{12} << 30;
  const std::atomic<bool>* stop = nullptr;
  std::filesystem::path checkpoint = {};  // where decisions are kept; empty: nowhere
  bool resume = false;                    // take up those that are there
  std::function<void(std::string_view stage, std::size_t done, std::size_t all)> progress = {};
};

struct Generated {
  std::vector<rules::Rule> rules;  // proved, small ones first
  std::size_t graphs = 0;          // different up to names and order, connected
  CandidateCounts counts;
  std::size_t derivable = 0;  // pairs that follow from smaller ones
  std::size_t candidates = 0, proved = 0, refuted = 0, unknown = 0, trivial = 0;
  double enumeration_seconds = 0, proof_seconds = 0;
  bool stopped = false;  // before all candidates were decided
};

/// Finds rules: enumerates all terms of a set up to a number of operators, pairs those that look
/// equal, and proves the pairs for all sizes. The same for any number of threads, and whether it
/// was interrupted or not.
Expected<Generated> generate(const OperatorSet& set, const GenerateOptions& options);

}  // namespace tessera::superopt
