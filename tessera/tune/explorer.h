#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tessera/support/rng.h"
#include "tessera/tune/task.h"

namespace tessera::tune {

/// Explorer of a schedule space: simulated annealing over neighbouring schedules by predicted time,
/// with some random candidates (epsilon-greedy). Predictions are corrected by what was measured
/// nearby. The same seed and measurements give the same batches.
class Explorer {
 public:
  /// `predicted` has the logarithm of the time of each candidate, relative to any of them.
  Explorer(const Task& task, std::vector<double> predicted, std::uint64_t seed);

  /// Records the time of a candidate relative to the default; none: it cannot be run.
  void record(std::size_t candidate, std::optional<double> ratio);
  /// Candidates to measure next, not measured yet; empty: the space is exhausted.
  std::vector<std::size_t> next_batch(std::size_t count);

  /// Best candidate that was measured, with its ratio.
  std::optional<std::pair<std::size_t, double>> best() const;
  /// Candidates that were measured, the fastest first.
  std::vector<std::size_t> fastest(std::size_t count) const;
  std::size_t measured() const { return measured_.size(); }
  /// Predicted logarithm of the ratio to the default, corrected by the measurements nearby.
  double predicted(std::size_t candidate) const;

 private:
  using Point = std::vector<double>;  // Candidate::point
  double distance(std::size_t a, std::size_t b) const;
  std::size_t neighbour(std::size_t of);

  std::vector<double> predicted_;
  std::vector<Point> points_;
  std::map<std::vector<double>, std::vector<std::size_t>> lines_;  // equal but for one coordinate
  std::map<std::size_t, std::optional<double>> measured_;          // logarithms of ratios
  Rng rng_;
};

}  // namespace tessera::tune
