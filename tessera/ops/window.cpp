#include "tessera/ops/window.h"

namespace tessera {
namespace {

Scalar ceil_div(const Scalar& a, const Dim& b) {
  return floor_div(a + Scalar(b - 1), b);
}

}  // namespace

Expected<Window> Window::of(const Attrs& attrs, std::vector<Axis> extent, std::vector<Axis> tap) {
  const std::size_t spatial = extent.size();
  Window window{.extent = std::move(extent),
                .tap = std::move(tap),
                .at = axes("y", static_cast<int>(spatial))};
  TESSERA_TRY(window.strides, size_attrs(attrs, "strides", spatial, 1));
  TESSERA_TRY(window.dilations, size_attrs(attrs, "dilations", spatial, 1));
  TESSERA_TRY(const Shape pads, size_attrs(attrs, "pads", 2 * spatial, 0));
  const std::string mode = attrs.has("auto_pad") ? attrs.s("auto_pad") : "NOTSET";
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!same && mode != "NOTSET" && mode != "VALID")
    return bad_operands(fmt::format("auto_pad is {}", mode),
                        "it is one of NOTSET, VALID, SAME_UPPER, SAME_LOWER");
  const bool up = attrs.has("ceil_mode") && attrs.i("ceil_mode") != 0;

  for (std::size_t i = 0; i < spatial; ++i) {
    const Dim size = window.extent[i], reach = window.reach(i), stride = window.strides[i];
    Dim before = 0, after = 0, positions;
    if (same) {
      positions = tessera::ceil_div(size, stride);
      const Dim total = max((positions - 1) * stride + reach - size, 0);
      const Dim half = floor_div(total, 2);
      before = mode == "SAME_UPPER" ? half : total - half;
      after = total - before;
    } else {
      if (mode == "NOTSET") before = pads[i], after = pads[spatial + i];
      const Dim room = size + before + after - reach;
      positions = (up ? tessera::ceil_div(room, stride) : floor_div(room, stride)) + 1;
      // Rounding up must not add a window that starts behind the image.
      if (up)
        positions = positions - min(max((positions - 1) * stride - (size + before) + 1, 0), 1);
    }
    window.before.push_back(before);
    window.after.push_back(after);
    window.at[i].extent = positions;
  }
  return window;
}

Dim Window::reach(std::size_t axis) const {
  return (tap[axis].size() - 1) * dilations[axis] + 1;
}

std::vector<Scalar> Window::source() const {
  std::vector<Scalar> result;
  for (std::size_t i = 0; i < spatial(); ++i)
    result.push_back(Scalar(at[i]) * strides[i] + Scalar(tap[i]) * dilations[i] -
                     Scalar(before[i]));
  return result;
}

Scalar Window::taps_inside(std::size_t axis, Counts counts) const {
  // Relative to the start of the padding.
  const Scalar start = Scalar(at[axis]) * strides[axis];
  const bool all = counts == Counts::Padding;
  const Scalar low = all ? Scalar(0) : Scalar(before[axis]);
  const Scalar high =
      Scalar(before[axis]) + Scalar(extent[axis].size()) + (all ? Scalar(after[axis]) : Scalar(0));
  const Scalar first = max(ceil_div(low - start, dilations[axis]), 0);
  const Scalar end = min(ceil_div(high - start, dilations[axis]), tap[axis].size());
  return max(end - first, 0);
}

Window::Readers Window::readers() const {
  Readers result;
  for (std::size_t i = 0; i < spatial(); ++i) {
    const Scalar moved = Scalar(extent[i]) + Scalar(before[i]) - Scalar(tap[i]) * dilations[i];
    result.position.push_back(floor_div(moved, strides[i]));
    if (strides[i].is(1)) continue;
    const Scalar exact = equal(mod(moved, strides[i]), 0);
    result.exact = result.exact ? *result.exact && exact : exact;
  }
  return result;
}

std::vector<AttrSpec> window_attrs(const std::vector<AttrSpec>& more) {
  return concat<AttrSpec>({{"auto_pad", "NOTSET"},
                           symbolic_attr("dilations", Ints{}, 1),
                           {"kernel_shape", Ints{}},
                           symbolic_attr("pads", Ints{}, 0),
                           symbolic_attr("strides", Ints{}, 1)},
                          more);
}

Expected<std::vector<Axis>> window_taps(const Attrs& attrs, int spatial) {
  std::vector<Axis> tap = axes("r", spatial);
  const Ints& given = attrs.ints("kernel_shape");
  if (given.empty()) return tap;
  TESSERA_TRY(const Shape taps, size_attrs(attrs, "kernel_shape", tap.size(), 1));
  return sized(std::move(tap), taps);
}

std::vector<Axis> sized(std::vector<Axis> axes, const Shape& sizes) {
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i].extent = sizes[i];
  return axes;
}

}  // namespace tessera
