#pragma once

#include <optional>
#include <vector>

#include "tessera/ops/opdef.h"

namespace tessera {

/// Sliding window over the spatial axes of an image (convolutions, pooling): the image element that
/// each tap reads at each position.
///
///     h = y*stride + r*dilation - before
struct Window {
  std::vector<Axis> extent;  // h: along the image
  std::vector<Axis> tap;     // r: within the window
  std::vector<Axis> at;      // y: the positions of the window
  Shape strides = {}, dilations = {};
  Shape before = {}, after = {};  // padding

  /// Reads those of `strides`, `dilations`, `pads` (begins, then ends), `auto_pad` and `ceil_mode`
  /// that are present; empty lists mean 1, 1 and 0.
  static Expected<Window> of(const Attrs& attrs, std::vector<Axis> extent, std::vector<Axis> tap);

  std::size_t spatial() const { return strides.size(); }

  /// Extent of the image that the window spans along an axis.
  Dim reach(std::size_t axis) const;

  /// Image positions that the taps read.
  std::vector<Scalar> source() const;

  /// Number of taps of a position that lie in the image along an axis, or in the padded image.
  enum class Counts { Image, Padding };
  Scalar taps_inside(std::size_t axis, Counts counts) const;

  /// Inverse: the window position at which each tap reads a given element, which exists where
  /// `exact` is true (always, if there is no `exact`).
  struct Readers {
    std::vector<Scalar> position;
    std::optional<Scalar> exact;
  };
  Readers readers() const;
};

/// Declarations of the attributes that Window::of reads, and `more`.
std::vector<AttrSpec> window_attrs(const std::vector<AttrSpec>& more = {});

/// Axes of the taps `r`, with the sizes of `kernel_shape`, or unsized if it is empty.
Expected<std::vector<Axis>> window_taps(const Attrs& attrs, int spatial);

/// Gives the axes these sizes.
std::vector<Axis> sized(std::vector<Axis> axes, const Shape& sizes);

}  // namespace tessera
