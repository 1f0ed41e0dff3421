#include "tessera/passes/trim_windows.h"

#include <algorithm>

#include "tessera/ir/rebuild.h"
#include "tessera/ops/operators.h"
#include "tessera/passes/conv_windows.h"

namespace tessera::passes {
namespace {

/// Drops taps at both ends. The first and last one that are left start within the padding or at
/// its end, so that pads stay positive.
WindowAxis trimmed(const WindowAxis& window, std::int64_t& first) {
  const auto& [image, positions, taps, stride, dilation, pad_begin, pad_end] = window;
  std::int64_t last = taps - 1;
  first = 0;
  while (first < last && !window.reads_image(first) && (first + 1) * dilation <= pad_begin) ++first;
  while (last > first && !window.reads_image(last) && (taps - last) * dilation <= pad_end) --last;
  WindowAxis result = window;
  result.taps = last - first + 1;
  result.pad_begin -= first * dilation;
  result.pad_end -= (taps - 1 - last) * dilation;
  if (result.taps == 1) result.dilation = 1;
  return result;
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
      const WindowAxis now = trimmed(window, from.emplace_back());
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
