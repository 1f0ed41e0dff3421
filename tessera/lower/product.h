#pragma once

#include <optional>
#include <vector>

#include "tessera/expr/scalar.h"

namespace tessera::lower {

/// Expression as a product: its factors and its divisors.
struct ScalarProduct {
  /// Depth to which multiplications are taken apart.
  static constexpr int kDepth = 8;

  std::vector<Scalar> over = {}, under = {};

  static ScalarProduct of(const Scalar& term, int depth = kDepth);

  /// The product of those that are asked for, which are taken out; nothing if there are none.
  template <class Which>
  std::optional<Scalar> take(const Which& which) {
    const auto product = [&](std::vector<Scalar>& factors) {
      std::optional<Scalar> all;
      for (const Scalar& factor : factors)
        if (which(factor)) all = all ? *all * factor : factor;
      std::erase_if(factors, which);
      return all;
    };
    const std::optional<Scalar> top = product(over), bottom = product(under);
    if (!bottom) return top;
    return (top ? *top : Scalar(1.0)) / *bottom;
  }

 private:
  void add(const Scalar& term, int depth);
};

}  // namespace tessera::lower
