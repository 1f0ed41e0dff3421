#pragma once

#include <functional>
#include <vector>

#include "tessera/expr/definition.h"

namespace tessera {

/// Interpolation kernel: weight of a sample by its distance from the point, zero beyond `reach`.
struct Kernel {
  int reach = 1;
  std::function<Scalar(const Scalar& distance)> weight;
};

/// Linear interpolation: the triangle 1 - |x|.
Kernel linear_kernel();
/// Cubic interpolation: R. Keys, Cubic convolution interpolation for digital image processing
/// (1981), with his parameter a.
Kernel cubic_kernel(double a);

/// Converts a whole number to an integer index.
Scalar as_index(const Scalar& whole);
/// Clamps x to [0, size - 1].
Scalar clamped(const Scalar& x, const Dim& size);

/// Interpolated value at a point, along as many axes as it has coordinates: the samples around the
/// point, weighted by the kernel and summed over the axes `t0, t1, …`.
using Samples = std::function<Scalar(const std::vector<Scalar>& position)>;
Scalar interpolated(const std::vector<Scalar>& point, const Kernel& kernel, const Samples& samples);

/// Interpolation as a term and the axes over which it is summed.
struct InterpolationTerm {
  std::vector<Bound> taps;
  Scalar term;
};
InterpolationTerm interpolation_term(const std::vector<Scalar>& point, const Kernel& kernel,
                                     const Samples& samples);

}  // namespace tessera
