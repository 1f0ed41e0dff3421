#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tessera::lower {

inline double number(std::int64_t x) {
  return static_cast<double>(x);
}

/// A size as a feature: its logarithm to base 2.
inline float log_feature(double x) {
  return static_cast<float>(std::log2(std::max(x, 1e-30)));
}

inline float flag_feature(bool is) {
  return is ? 1.0F : 0.0F;
}

}  // namespace tessera::lower
