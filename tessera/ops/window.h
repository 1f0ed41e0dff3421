#pragma once

#include <optional>
#include <vector>

#include "tessera/ops/opdef.h"

namespace tessera {

/// A window that slides over the spatial axes of an image: which element of the image each of its
/// taps reads at each of its positions.
///
///     h = y*stride + r*dilation - before
struct Window {
  std::vector<Axis> extent;  // h: along the image
  std::vector<Axis> tap;     // r: within the window
  std::vector<Axis> at;      // y: the positions of the window
  Shape strides = {}, dilations = {};
  Shape before = {}, after = {};  // how far the image is padded

  /// Reads `strides`, `dilations`, `pads` (begins, then ends), `auto_pad` and `ceil_mode`, as far
  /// as there are such; empty lists mean 1, 1 and 0.
  static Expected<Window> of(const Attrs& attrs, std::vector<Axis> extent, std::vector<Axis> tap);

  std::size_t spatial() const { return strides.size(); }

  /// How much of the image the window spans along an axis.
  Dim reach(std::size_t axis) const;

  /// The elements that the taps read.
  std::vector<Scalar> source() const;

  /// How many taps of a position lie in the image along an axis, or in its padding, if that counts.
  enum class Counts { Image, Padding };
  Scalar taps_inside(std::size_t axis, Counts counts) const;

  /// The other way round: at which position each tap reads a given element. Where `exact` is false
  /// there is none; no `exact`: it always is.
  struct Readers {
    std::vector<Scalar> position;
    std::optional<Scalar> exact;
  };
  Readers readers() const;
};

/// What Window::of reads, and more.
std::vector<AttrSpec> window_attrs(const std::vector<AttrSpec>& more = {});

/// The taps `r` of a window, of the sizes that `kernel_shape` gives; unsized where it is empty.
Expected<std::vector<Axis>> window_taps(const Attrs& attrs, int spatial);

/// The same axes, sized.
std::vector<Axis> sized(std::vector<Axis> axes, const Shape& sizes);

}  // namespace tessera
