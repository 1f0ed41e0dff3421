#include "tessera/passes/conv_windows.h"

#include <algorithm>

#include "tessera/expr/number.h"

namespace tessera::passes {

std::int64_t WindowAxis::first(std::int64_t tap) const {
  const std::int64_t from = offset(tap);
  return from >= 0 ? 0 : (stride - 1 - from) / stride;
}

std::int64_t WindowAxis::count(std::int64_t tap) const {
  const std::int64_t end = integer::floor_div(image - 1 - offset(tap), stride) + 1;
  return std::max<std::int64_t>(std::min(end, positions) - first(tap), 0);
}

std::vector<WindowAxis> windows_of(const Graph& graph, const GraphNode& node,
                                   const Tensor& weights) {
  const auto image = static_shape(graph.type(graph.inputs(node)[0]));
  const auto result = static_shape(graph.type(graph.outputs(node)[0]));
  const Attrs& attrs = *node.attrs;
  if (!image || !result || attrs.s("auto_pad") != "NOTSET") return {};
  const auto value = [&](const char* name, std::size_t i, std::int64_t otherwise) {
    const Ints& values = attrs.ints(name);
    return i < values.size() ? values[i] : otherwise;
  };
  std::vector<WindowAxis> windows;
  const std::size_t spatial = image->size() - 2;
  for (std::size_t i = 0; i < spatial; ++i)
    windows.push_back({.image = (*image)[i + 2],
                       .positions = (*result)[i + 2],
                       .taps = weights.shape[i + 2],
                       .stride = value("strides", i, 1),
                       .dilation = value("dilations", i, 1),
                       .pad_begin = value("pads", i, 0),
                       .pad_end = value("pads", spatial + i, 0)});
  return windows;
}

Tensor part_of(const Tensor& weights, const Ints& from, const Ints& taps) {
  std::vector<std::int64_t> shape(weights.shape.begin(), weights.shape.begin() + 2);
  shape.insert(shape.end(), taps.begin(), taps.end());
  const auto width = static_cast<std::int64_t>(byte_width(weights.dtype));
  std::int64_t windows = shape[0] * shape[1], count = 1;
  for (const std::int64_t n : taps) count *= n;
  Buffer buffer(static_cast<std::size_t>(windows * count * width));
  std::byte* to = buffer.data();
  for (std::int64_t window = 0; window < windows; ++window)
    for (std::int64_t i = 0; i < count; ++i, to += width) {
      std::int64_t at = 0, rest = i, step = 1;
      for (std::size_t axis = taps.size(); axis-- > 0;) {
        at += (from[axis] + rest % taps[axis]) * step;
        rest /= taps[axis];
        step *= weights.shape[axis + 2];
      }
      std::copy_n(weights.bytes.data() + (window * step + at) * width, width, to);
    }
  return {weights.dtype, shape, std::move(buffer).freeze()};
}

}  // namespace tessera::passes
