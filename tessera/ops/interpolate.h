#pragma once

#include <functional>
#include <vector>

#include "tessera/expr/definition.h"

namespace tessera {

/// How much a sample counts for a point at a distance from it; nothing beyond `reach`.
struct Kernel {
  int reach = 1;
  std::function<Scalar(const Scalar& distance)> weight;
};

/// The triangle 1 - |x|.
Kernel linear_kernel();
/// R. Keys, Cubic convolution interpolation for digital image processing (1981), with his a.
Kernel cubic_kernel(double a);

/// A number as the integer that it is.
Scalar as_index(const Scalar& whole);
/// x within [0, size - 1].
Scalar clamped(const Scalar& x, const Dim& size);

/// The value at a point between samples, along as many axes as it has coordinates: samples
/// around the point, weighted by the kernel and summed up over the axes `t0, t1, …`.
using Samples = std::function<Scalar(const std::vector<Scalar>& position)>;
Scalar interpolated(const std::vector<Scalar>& point, const Kernel& kernel, const Samples& samples);

/// The same before it is summed up.
struct Weighted {
  std::vector<Bound> taps;
  Scalar term;
};
Weighted weighted(const std::vector<Scalar>& point, const Kernel& kernel, const Samples& samples);

}  // namespace tessera
