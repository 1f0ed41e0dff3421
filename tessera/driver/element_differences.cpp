#include "tessera/driver/element_differences.h"

#include <algorithm>
#include <cmath>

namespace tessera {

ElementDifferences element_differences(const Tensor& found, const Tensor& expected,
                                       double tolerance,
                                       const std::function<double(double expected)>& scale) {
  ElementDifferences result;
  const std::int64_t count = expected.count();
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_float(expected.dtype)) {
      const double x = number_at(found, i), y = number_at(expected, i);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double apart = std::fabs(x - y) / scale(y);
      result.worst = std::isnan(apart) ? INFINITY : std::max(result.worst, apart);
      if (apart <= tolerance) continue;
    } else if (integer_at(found, i) == integer_at(expected, i)) {
      continue;
    }
    if (result.count++ == 0) result.first = i;
  }
  return result;
}

}  // namespace tessera
