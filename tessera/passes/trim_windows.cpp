#include "tessera/passes/trim_windows.h"

#include <algorithm>

#include "tessera/ir/rebuild.h"
#include "tessera/ops/operators.h"

namespace tessera::passes {
namespace {

/// Window of a convolution along one spatial axis.
struct WindowAxis {
  std::int64_t image, positions, taps, stride, dilation, pad_begin, pad_end;

  /// Whether a tap reads an element of the image for some position of the window.
  bool reads_image(std::int64_t tap) const {
    const std::int64_t from = tap * dilation - pad_begin;
    const std::int64_t first = from >= 0 ? 0 : (stride - 1 - from) / stride;
    return first < positions && from + first * stride < image;
  }

  /// Drops taps at both ends. The first and last one that are left start within the padding or at
  /// its end, so that pads stay positive.
  WindowAxis trimmed(std::int64_t& first) const {
    std::int64_t last = taps - 1;
    first = 0;
    while (first < last && !reads_image(first) && (first + 1) * dilation <= pad_begin) ++first;
    while (last > first && !reads_image(last) && (taps - last) * dilation <= pad_end) --last;
    WindowAxis result = *this;
    result.taps = last - first + 1;
    result.pad_begin -= first * dilation;
    result.pad_end -= (taps - 1 - last) * dilation;
    if (result.taps == 1) result.dilation = 1;
    return result;
  }
};

/// Copies the part of `weights` [filters, channels, taps…] that begins at `from` and has `taps`.
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

/// Windows of a convolution by spatial axis; none where its sizes are not known.
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

}  // namespace

Graph trim_windows(const Graph& graph) {
  if (std::ranges::none_of(graph.nodes(),
                           [](const GraphNode& node) { return node.op == op::conv; }))
    return graph;
  return rebuild(graph, [&](Rebuilder& out, const GraphNode& node) {
    const Tensor* weights = node.op == op::conv ? graph.constant(graph.inputs(node)[1]) : nullptr;
    if (weights == nullptr || weights->bytes.size() == 0 || !is_float(weights->dtype))
      return out.copy(node);
    Ints from, taps, dilations, pads, pads_end;
    bool is_trimmed = false;
    for (const WindowAxis& window : windows_of(graph, node, *weights)) {
      const WindowAxis now = window.trimmed(from.emplace_back());
      taps.push_back(now.taps);
      dilations.push_back(now.dilation);
      pads.push_back(now.pad_begin);
      pads_end.push_back(now.pad_end);
      is_trimmed = is_trimmed || now.taps < window.taps;
    }
    if (!is_trimmed) return out.copy(node);
    pads.insert(pads.end(), pads_end.begin(), pads_end.end());
    std::vector<ValueId> inputs = out.inputs_of(node);
    inputs[1] = out.constant(part_of(*weights, from, taps));
    Attrs attrs = *node.attrs;
    attrs.set("kernel_shape", std::move(taps));
    attrs.set("dilations", std::move(dilations));
    attrs.set("pads", std::move(pads));
    return out.add({.op = op::conv,
                    .attrs = std::move(attrs),
                    .inputs = std::move(inputs),
                    .outputs = {graph.type(graph.outputs(node)[0])}});
  });
}

}  // namespace tessera::passes
