#pragma once

#include <cstdint>
#include <functional>

#include "tessera/support/tensor.h"

namespace tessera {

/// The elements by which two tensors of the same type differ.
struct ElementDifferences {
  std::int64_t count = 0;
  std::int64_t first = 0;  // the index of the first one
  double worst = 0;        // the largest |found - expected| / scale(expected) of floats
};

/// Floats differ if |found - expected| > tolerance * scale(expected), NaN being equal to NaN;
/// integers if they are not equal.
ElementDifferences element_differences(const Tensor& found, const Tensor& expected,
                                       double tolerance,
                                       const std::function<double(double expected)>& scale);

}  // namespace tessera
