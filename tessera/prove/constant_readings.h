#pragma once

#include <functional>
#include <set>
#include <vector>

#include "tessera/prove/prove.h"

namespace tessera::prove {

/// How the proofs that a comparison consists of read constants. A proof may read 0.70710677 as
/// 1/sqrt(2), and another as the number that it is; both together would prove what is false.
class ConstantReadings {
 public:
  using Prover =
      std::function<Verdict(const Graph& source, const Graph& target, const Options& options)>;

  /// Notes that two graphs were proved equal, and with what assumptions.
  void add(const Graph& source, const Graph& target, const Options& options,
           const std::vector<Assumption>& assumptions);

  /// Whether all proofs read each constant alike: those that read one as a number that stands for a
  /// real in another are made again. `assumptions` gets what they assume then.
  bool agree(const Prover& prover, std::set<Assumption>& assumptions);

 private:
  struct Shown {
    Graph source, target;
    Options options;
  };
  std::vector<Shown> exact_;  // proofs that read all constants as the numbers that they are
  std::set<Assumption> named_;
};

}  // namespace tessera::prove
