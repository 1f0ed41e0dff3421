#pragma once

#include <map>
#include <span>
#include <string>

#include "tessera/cost/store.h"
#include "tessera/cost/unit.h"

namespace tessera::cost {

/// Roofline-like cost model: seconds of work as a linear function of operations, bytes and
/// launches, with factors per kind of work. A kind that was measured often enough has factors
/// fitted to its measurements by least relative squares, centred so that half of them are
/// overestimated; others have those of a well-tuned kernel on the target.
class Roofline {
 public:
  Roofline(const Target& target, std::span<const Measurement> measured);

  double seconds(const Work& work) const;

 private:
  struct Factors {
    double per_operation = 0, per_byte = 0, per_launch = 0;
    double of(const Work& work) const {
      return work.operations * per_operation + work.bytes * per_byte + work.launches * per_launch;
    }
  };
  static Factors fit(std::span<const Measurement* const> measured);
  /// Scales the factors so that half of the measurements are overestimated.
  static void centre(Factors& factors, std::span<const Measurement* const> measured);
  Factors usual(const std::string& kind) const;

  Target target_;
  std::map<std::string, Factors> fitted_;
};

/// Spearman's rank correlation of two lists, with average ranks for ties: 1 if they order alike.
double rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace tessera::cost
