#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/support/expected.h"

namespace tessera {

/// An operator that takes a square window of each channel of f16 by itself, with as many pixels
/// around the image as keep its size.
struct ChannelWindow {
  std::string op = "max_pool";  // average_pool, or conv: with weights of each channel's own
  std::int64_t batch = 32, size = 56, channels = 64, window = 3, stride = 1;

  std::int64_t result() const { return (size + window / 2 * 2 - window) / stride + 1; }
  /// Of the image and of the result.
  double bytes() const;
  std::string name() const;
  Expected<Graph> graph() const;
};

std::vector<ChannelWindow> channel_windows();

}  // namespace tessera
