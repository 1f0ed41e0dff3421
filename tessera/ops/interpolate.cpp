#include "tessera/ops/interpolate.h"

namespace tessera {

Kernel linear_kernel() {
  return {.reach = 1, .weight = [](const Scalar& x) { return max(1.0 - abs(x), 0.0); }};
}

Kernel cubic_kernel(double a) {
  return {.reach = 2, .weight = [a](const Scalar& distance) {
            const Scalar x = abs(distance);
            const Scalar near = ((a + 2) * x - (a + 3)) * x * x + 1.0;
            const Scalar far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
            return select(x <= 1.0, near, select(x < 2.0, far, 0.0));
          }};
}

Scalar as_index(const Scalar& whole) {
  return cast(DType::I64, whole);
}

Scalar clamped(const Scalar& x, const Dim& size) {
  return min(max(x, like(x, 0)), Scalar(size) - 1);
}

InterpolationTerm interpolation_term(const std::vector<Scalar>& point, const Kernel& kernel,
                                     const Samples& samples) {
  const std::vector<Axis> taps = axes("t", static_cast<int>(point.size()));
  InterpolationTerm result{.taps = {}, .term = 1.0};
  std::vector<Scalar> position;
  for (std::size_t i = 0; i < point.size(); ++i) {
    const Axis tap{taps[i].name, 2 * kernel.reach};
    position.push_back(as_index(floor(point[i])) + Scalar(tap) - (kernel.reach - 1));
    const Scalar weight = kernel.weight(position[i] - point[i]);
    result.term = i == 0 ? weight : result.term * weight;
    result.taps.push_back(tap);
  }
  result.term = result.term * samples(position);
  return result;
}

Scalar interpolated(const std::vector<Scalar>& point, const Kernel& kernel,
                    const Samples& samples) {
  const InterpolationTerm parts = interpolation_term(point, kernel, samples);
  return sum(parts.taps, parts.term);
}

}  // namespace tessera
