#include <numbers>

#include "tessera/ops/families.h"

// Functions composed of the scalar functions such that no digits cancel.
namespace tessera::define {
namespace {

OpDef function(std::string name, std::string summary, Unary f) {
  return elementwise(std::move(name), std::move(summary), std::move(f), Domain::Floats);
}

/// log(1 + x) without cancellation for small x (Kahan): a factor corrects the rounding of 1 + x.
Scalar log_one_plus(const Scalar& x) {
  const Scalar sum = 1.0 + x, kept = sum - 1.0;
  const Scalar corrected = log(sum) * (x / kept);
  return select(equal(kept, x), log(sum), select(equal(kept, 0.0), x, corrected));
}

/// Beyond this, x*x + 1 = x*x in every type, and x*x may overflow.
constexpr double kLarge = 1e9;

}  // namespace

OpDef reciprocal() {
  return function("reciprocal", "1 / x", [](const Scalar& x) { return 1.0 / x; });
}
OpDef sqrt() {
  return function("sqrt", "square root of x", [](const Scalar& x) { return tessera::sqrt(x); });
}
OpDef exp() {
  return function("exp", "e to the power of x", [](const Scalar& x) { return tessera::exp(x); });
}
OpDef log() {
  return function("log", "natural logarithm of x", [](const Scalar& x) { return tessera::log(x); });
}
OpDef sin() {
  return function("sin", "sine of x", [](const Scalar& x) { return tessera::sin(x); });
}
OpDef cos() {
  return function("cos", "cosine of x", [](const Scalar& x) { return tessera::cos(x); });
}
OpDef atan() {
  return function("atan", "angle with tangent x", [](const Scalar& x) { return tessera::atan(x); });
}
OpDef tanh() {
  return function("tanh", "hyperbolic tangent of x",
                  [](const Scalar& x) { return tessera::tanh(x); });
}
OpDef erf() {
  return function("erf", "error function of x", [](const Scalar& x) { return tessera::erf(x); });
}
OpDef floor() {
  return function("floor", "largest integer <= x",
                  [](const Scalar& x) { return tessera::floor(x); });
}
OpDef ceil() {
  return function("ceil", "smallest integer >= x",
                  [](const Scalar& x) { return tessera::ceil(x); });
}
OpDef round() {
  return function("round", "nearest integer, ties to even",
                  [](const Scalar& x) { return tessera::round(x); });
}

OpDef tan() {
  return function("tan", "tangent of x",
                  [](const Scalar& x) { return tessera::sin(x) / tessera::cos(x); });
}

OpDef asin() {
  return function("asin", "angle with sine x", [](const Scalar& x) {
    return tessera::atan(x / tessera::sqrt((1.0 - x) * (1.0 + x)));
  });
}

OpDef acos() {
  return function("acos", "angle with cosine x", [](const Scalar& x) {
    return 2.0 * tessera::atan(tessera::sqrt((1.0 - x) / (1.0 + x)));
  });
}

OpDef sinh() {
  return function("sinh", "hyperbolic sine of x", [](const Scalar& x) {
    // The difference of two powers near 1 loses digits; there, go through the half angle.
    const Scalar half = tessera::tanh(x * 0.5);
    return select(tessera::abs(x) < 1.0, 2.0 * half / (1.0 - half * half),
                  (tessera::exp(x) - tessera::exp(-x)) * 0.5);
  });
}

OpDef cosh() {
  return function("cosh", "hyperbolic cosine of x",
                  [](const Scalar& x) { return (tessera::exp(x) + tessera::exp(-x)) * 0.5; });
}

OpDef asinh() {
  return function("asinh", "inverse hyperbolic sine of x", [](const Scalar& x) {
    const Scalar size = tessera::abs(x), square = x * x;
    const Scalar value = select(size > kLarge, tessera::log(size) + std::numbers::ln2,
                                log_one_plus(size + square / (1.0 + tessera::sqrt(square + 1.0))));
    return select(x < 0.0, -value, value);
  });
}

OpDef acosh() {
  return function("acosh", "inverse hyperbolic cosine of x", [](const Scalar& x) {
    const Scalar above = x - 1.0;
    // NaN below 1; without abs the root would be defined again below -1.
    return select(x > kLarge, tessera::log(x) + std::numbers::ln2,
                  log_one_plus(above + tessera::sqrt(above * tessera::abs(above + 2.0))));
  });
}

OpDef atanh() {
  return function("atanh", "inverse hyperbolic tangent of x", [](const Scalar& x) {
    const Scalar size = tessera::abs(x);
    const Scalar value = 0.5 * log_one_plus(2.0 * size / (1.0 - size));
    return select(x < 0.0, -value, value);
  });
}

}  // namespace tessera::define
