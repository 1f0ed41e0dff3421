#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "tessera/certify/check.h"
#include "tessera/prove/reasons.h"

namespace tessera::prove {

/// Limits of a proof search.
struct Limits {
  std::int64_t most_terms = 2'000;
  std::int64_t most_steps = 2'000;
  bool reconciles = true;  // whether to split terms by the cases of the other side
  int cases = 3;           // how deep proofs by cases of a maximum may be inside of each other
  int signs = 5;           // the same for cases of the sign of a sum
  int* budget = nullptr;   // of cases, in all; large sums cost more
  bool explains = true;    // whether `why` is wanted
  const std::atomic<bool>* stop = nullptr;
  /// Computed tensors that are not to be unfolded.
  std::function<bool(const std::string& tensor)> keeps = {};
};

/// Proof search: finds the steps that make both sides of a goal the same. It unfolds definitions,
/// rewrites sums to normal form, and splits terms where one side distinguishes cases that the other
/// does not. Returns whether the goal is proved; `proof` holds the steps, `why` what is left if it
/// is not. What `arithmetic` has found out serves further proofs.
bool settle(certify::State& state, certify::Proof& proof, const Limits& limits,
            Arithmetic& arithmetic, std::string& why);

}  // namespace tessera::prove
