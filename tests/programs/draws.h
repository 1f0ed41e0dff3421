#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/support/attrs.h"
#include "tessera/support/rng.h"

namespace tessera::testing {

/// Random choices, the same for the same seed.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : rng_(seed) {}

  int below(int bound) { return static_cast<int>(rng_.below(static_cast<std::uint64_t>(bound))); }
  bool one_in(int n) { return below(n) == 0; }
  /// Both ends included; `low` where nothing is between.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    if (high <= low) return low;
    return low + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[rng_.below(list.size())];
  }
  double uniform() { return rng_.uniform(); }
  /// `count` numbers from `first` on, in any order.
  Ints permutation(std::size_t count, std::int64_t first = 0) {
    Ints order(count);
    std::iota(order.begin(), order.end(), first);
    for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[rng_.below(i)]);
    return order;
  }

 private:
  Rng rng_;
};

}  // namespace tessera::testing
