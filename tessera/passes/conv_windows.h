#pragma once

#include <cstdint>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera::passes {

/// Window of a convolution along one spatial axis.
struct WindowAxis {
  std::int64_t image, positions, taps, stride, dilation, pad_begin, pad_end;

  /// Offset of the element of the image that a tap reads at the first position of the window.
  std::int64_t offset(std::int64_t tap) const { return tap * dilation - pad_begin; }
  /// First position of the window at which a tap reads an element of the image.
  std::int64_t first(std::int64_t tap) const;
  /// Number of positions, from the first one on, at which it does.
  std::int64_t count(std::int64_t tap) const;
  bool reads_image(std::int64_t tap) const { return count(tap) > 0; }
};

/// Windows of a convolution with constant weights by spatial axis; none where its sizes are not
/// known.
std::vector<WindowAxis> windows_of(const Graph& graph, const GraphNode& node,
                                   const Tensor& weights);

/// Copies the part of `weights` [filters, channels, taps…] that begins at `from` and has `taps`.
Tensor part_of(const Tensor& weights, const Ints& from, const Ints& taps);

}  // namespace tessera::passes
