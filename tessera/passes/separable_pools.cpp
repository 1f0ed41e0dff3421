#include "tessera/passes/separable_pools.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "tessera/passes/writer.h"

namespace tessera::passes {
namespace {

/// Whether a pass along each axis, which also writes and reads the image again, has less to do than
/// one over the whole window. A pass costs about as much as its taps: 5 x 5 gains, 3 x 3 does not.
bool is_large(const Ints& window) {
  return product(window) > 2 * std::accumulate(window.begin(), window.end(), std::int64_t{0});
}

/// An attribute of the pool with the value of one axis, and that of a window of one element along
/// the others.
Ints along(const Ints& values, std::size_t axis, std::size_t spatial, std::int64_t otherwise) {
  Ints result(spatial, otherwise);
  if (!values.empty()) result[axis] = values[axis];
  return result;
}

std::optional<ValueId> separated(Rebuilder& out, const GraphNode& node) {
  const Graph& graph = out.from();
  const ValueId image = graph.inputs(node)[0];
  const auto outputs = graph.outputs(node);
  const auto from = static_shape(graph.type(image)), to = static_shape(graph.type(outputs[0]));
  const Attrs& attrs = *node.attrs;
  const Ints& window = attrs.ints("kernel_shape");
  if (outputs.size() > 1 || !from || !to || product(*from) == 0 || product(*to) == 0 ||
      attrs.s("auto_pad") != "NOTSET" || !is_large(window))
    return std::nullopt;
  const std::size_t spatial = window.size();
  Writer writer(out, graph.type(image).dtype);
  ValueId value = out.mapped(image);
  std::vector<std::int64_t> shape = *from;
  for (std::size_t axis = spatial; axis-- > 0;) {
    const Ints& both = attrs.ints("pads");
    Ints pads(2 * spatial, 0);
    if (!both.empty()) {
      pads[axis] = both[axis];
      pads[spatial + axis] = both[spatial + axis];
    }
    shape[2 + axis] = (*to)[2 + axis];
    value = writer.add(op::max_pool,
                       {{"kernel_shape", along(window, axis, spatial, 1)},
                        {"strides", along(attrs.ints("strides"), axis, spatial, 1)},
                        {"dilations", along(attrs.ints("dilations"), axis, spatial, 1)},
                        {"pads", pads},
                        {"ceil_mode", attrs.i("ceil_mode")}},
                       {value}, shape);
  }
  return value;
}

}  // namespace

Graph separable_pools(const Graph& graph) {
  return with_rewritten(graph, op::max_pool, separated);
}

}  // namespace tessera::passes
