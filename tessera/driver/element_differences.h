#pragma once

#include <cstdint>
#include <functional>

#include "tessera/support/tensor.h"

namespace tessera {

/// Elementwise differences of two tensors of the same type.
struct ElementDifferences {
  std::int64_t count = 0;
  std::int64_t first = 0;  // flat index of the first one
  double worst = 0;        // the largest |found - expected| / scale(expected) of floats
};

/// Compares elementwise. Floats differ if |found - expected| > tolerance * scale(expected), where
/// NaN equals NaN; integers if they are not equal.
ElementDifferences element_differences(const Tensor& found, const Tensor& expected,
                                       double tolerance,
                                       const std::function<double(double expected)>& scale);

}  // namespace tessera
