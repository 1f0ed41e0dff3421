#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera {

/// An image of f16 with as many zeros on each side as keep its size, a square window.
struct Convolution {
  std::int64_t batch = 32, height = 56, width = 56, channels = 64, filters = 64;
  std::int64_t window = 3, stride = 1, dilation = 1;

  std::int64_t pad() const { return window / 2 * dilation; }
  std::int64_t result(std::int64_t extent) const {
    return (extent + 2 * pad() - dilation * (window - 1) - 1) / stride + 1;
  }
  double operations() const;
  /// As bars.py reads it.
  std::string name() const;
  /// With weights that are constant.
  Expected<Graph> graph() const;
};

/// Those of resnet50, and others.
std::vector<Convolution> convolutions();

}  // namespace tessera
