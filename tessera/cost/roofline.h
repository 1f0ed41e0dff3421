#pragma once

#include <map>
#include <span>
#include <string>

#include "tessera/cost/store.h"
#include "tessera/cost/unit.h"

namespace tessera::cost {

/// Seconds of work by what the target does per second: operations, bytes and launches added up, by
/// factors of each kind of work. Where a kind was measured often enough, its factors are those that
/// come closest to the measurements, relative to each; else those of a well-made kernel. Of the
/// measurements that there are, half come out too large.
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
  /// So that half of the measurements come out too large.
  static void centre(Factors& factors, std::span<const Measurement* const> measured);
  Factors usual(const std::string& kind) const;

  Target target_;
  std::map<std::string, Factors> fitted_;
};

/// How far two lists of numbers agree on what is larger: 1 if always (Spearman's coefficient, equal
/// numbers sharing their ranks).
double rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace tessera::cost
