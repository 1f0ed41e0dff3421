#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "tessera/support/tensor.h"

namespace tessera::codegen {

/// Memory that ought to hold the same elements.
struct Compared {
  DType dtype = DType::F32;
  std::span<const std::byte> expected, found;
};

/// Where the first element is another one than expected; empty: nowhere. Integers, NaN and
/// infinities are to be equal; a float x may be off by `tolerance` * max(|x|, s), where s is the
/// largest finite element among its neighbours, but at most 1. So a memory of small numbers, such
/// as probabilities, is not taken for one of zeros.
inline std::string first_difference(const Compared& c, double tolerance) {
  constexpr std::int64_t kNeighbours = 1024;
  const std::int64_t width = byte_width(c.dtype);
  const auto all = static_cast<std::int64_t>(c.expected.size()) / width;
  for (std::int64_t begin = 0; begin < all; begin += kNeighbours) {
    const std::int64_t count = std::min(kNeighbours, all - begin);
    const auto at = static_cast<std::size_t>(begin * width);
    const auto bytes = static_cast<std::size_t>(count * width);
    const auto expected = c.expected.subspan(at, bytes), found = c.found.subspan(at, bytes);
    if (std::equal(expected.begin(), expected.end(), found.begin())) continue;
    const Tensor want{c.dtype, {count}, Bytes::copy(expected)};
    const Tensor got{c.dtype, {count}, Bytes::copy(found)};
    if (!is_float(c.dtype)) {
      for (std::int64_t i = 0; i < count; ++i)
        if (integer_at(want, i) != integer_at(got, i))
          return fmt::format("at {}: {} expected, {} found", begin + i, integer_at(want, i),
                             integer_at(got, i));
      continue;
    }
    double largest = 0;
    for (std::int64_t i = 0; i < count; ++i)
      if (const double x = std::fabs(number_at(want, i)); std::isfinite(x))
        largest = std::max(largest, x);
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = number_at(want, i), y = number_at(got, i);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double most = tolerance * std::max(std::fabs(x), std::min(largest, 1.0));
      if (!std::isfinite(x) || !(std::fabs(x - y) <= most))
        return fmt::format("at {}: {} expected, {} found", begin + i, x, y);
    }
  }
  return {};
}

}  // namespace tessera::codegen
