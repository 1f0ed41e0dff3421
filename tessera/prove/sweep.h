#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/prove/align.h"
#include "tessera/prove/locate.h"
#include "tessera/prove/prove.h"

namespace tessera::prove {

/// Progress of a comparison of two models.
struct SweepProgress {
  std::size_t done = 0, all = 0;
  std::string_view what;  // "comparing NAME"
};

/// Options of a comparison of two models.
struct SweepOptions {
  AlignOptions names = {};
  std::uint64_t seed = 1;
  int threads = 1;
  double pair_seconds = 2;  // of CPU time, for attempts to prove one pair of values
  int most_growth = 6;      // steps that a window grows back
  std::int64_t memory_limit = std::int64_t{4} << 30;
  const std::atomic<bool>* stop = nullptr;  // set from elsewhere: say what is known by now
  std::function<void(const SweepProgress&)> progress = {};
  /// Decides whether two windows are equal, in place of `prove`: to keep its proofs, or to replay
  /// those of a certificate.
  std::function<Verdict(const Graph& source, const Graph& target, const Options& options)> prover =
      prove;
};

/// Two subgraphs over the same inputs that could not be shown to be equal.
struct Unrelated {
  Graph source, target;
};

/// Verdict on two models, and what was compared.
struct SweepResult {
  Verdict verdict = Unknown{};
  std::size_t values = 0;     // of the target
  std::size_t congruent = 0;  // of these: equal to one of the source by congruence
  std::size_t proved = 0;     // by a proof of a window
  std::vector<std::string> input_names, output_names;  // of the source
  std::optional<Unrelated> unrelated;                  // of Unknown: the smallest pair
  std::optional<Divergence> divergence;                // of Refuted: where the models part
};

/// Equivalence check of two models, in the manner of SAT sweeping of circuits.
///
/// Values are paired by what they look like in one run, which is a guess and nothing else; then
/// each pair is proved from the nearest cut of pairs that are proved already. Values of the same
/// operator over equal operands are equal without further ado. Models are refuted by an input on
/// which the interpreter finds their outputs apart by more than rounding explains (`kDiffers`).
///
/// A diagnostic where the models do not have the same inputs and outputs.
Expected<SweepResult> sweep(const Graph& source, const Graph& target, const SweepOptions& options);

}  // namespace tessera::prove
