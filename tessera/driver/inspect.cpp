#include "tessera/driver/inspect.h"

#include <algorithm>
#include <vector>

#include "tessera/expr/shape.h"
#include "tessera/expr/work.h"
#include "tessera/ir/expand.h"
#include "tessera/ir/infer.h"

namespace tessera {
namespace {

/// Static information about the inputs of a node: types, and the content of small constants.
std::vector<ValueInfo> known_inputs(const Graph& graph, const GraphNode& node) {
  std::vector<ValueInfo> result;
  for (const ValueId input : graph.inputs(node)) {
    if (!input.present())
      result.push_back({.present = false});
    else if (const Tensor* constant = graph.constant(input))
      result.push_back(constant_info(*constant));
    else
      result.push_back({.type = graph.type(input)});
  }
  return result;
}

std::optional<Dim> work_of(const OpDef& op, const Attrs& attrs,
                           const std::vector<ValueInfo>& inputs);

std::optional<Dim> work_of_node(const Graph& graph, const GraphNode& node);

std::optional<Dim> work_of_graph(const Graph& graph) {
  Dim total = 0;
  for (const GraphNode& node : graph.nodes()) {
    const auto work = work_of_node(graph, node);
    if (!work) return std::nullopt;
    total = total + *work;
  }
  return total;
}

/// Work of a scan: as many iterations as its first element has slices. The trip counts of loops and
/// the branches taken are unknown before run time.
std::optional<Dim> work_of_scan(const Graph& graph, const GraphNode& node) {
  const auto states = static_cast<std::size_t>(node.attrs->i("states"));
  const auto elements = static_cast<std::size_t>(node.attrs->i("elements"));
  if (elements == 0 || states >= graph.inputs(node).size()) return std::nullopt;
  const Type& scanned = graph.type(graph.inputs(node)[states]);
  if (!scanned.is_ranked_tensor()) return std::nullopt;
  const Ints& axes = node.attrs->ints("input_axes");
  const auto axis =
      normal_axis(axes.empty() ? 0 : axes[0], static_cast<int>(scanned.shape->size()));
  const auto step = work_of_graph(*graph.subgraphs(node)[0]);
  if (!axis || !step) return std::nullopt;
  return (*scanned.shape)[static_cast<std::size_t>(*axis)] * *step;
}

std::optional<Dim> work_of_node(const Graph& graph, const GraphNode& node) {
  if (node.op->kind() != OpDef::Kind::Control)
    return work_of(*node.op, *node.attrs, known_inputs(graph, node));
  return node.op->control == OpDef::Control::Scan ? work_of_scan(graph, node) : std::nullopt;
}

std::optional<Dim> work_of(const OpDef& op, const Attrs& attrs,
                           const std::vector<ValueInfo>& inputs) {
  if (op.kind() == OpDef::Kind::Opaque) return Dim(0);
  if (op.kind() == OpDef::Kind::Composite) {
    const auto body = body_of(op, attrs, inputs, 1);
    return body ? work_of_graph(*body) : std::nullopt;
  }
  const std::optional<Signature> signature = signature_of(inputs);
  if (!signature || !op.define) return std::nullopt;
  const auto definition = op.define(attrs, *signature);
  if (!definition) return Dim(0);  // one that waits for a shape moves data, and multiplies nothing
  const auto sizes = solve_sizes(*definition, shapes_of(*signature));
  if (!sizes) return std::nullopt;
  Dim total = 0;
  for (const Output& output : definition->outputs) total = total + multiply_adds(output, *sizes);
  return total;
}

std::optional<std::int64_t> bytes_of(const Type& type) {
  if (!type.is_ranked_tensor()) return std::nullopt;
  const auto bytes = (product(*type.shape) * Dim(byte_width(type.dtype))).constant();
  return bytes && *bytes >= 0 ? bytes : std::nullopt;
}

std::optional<std::int64_t> peak_of(const Graph& graph) {
  std::vector<std::size_t> last(graph.value_count(), 0);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n)
    for (const ValueId input : graph.inputs(graph.nodes()[n]))
      if (input.present()) last[input.index] = n;
  for (const ValueId output : graph.outputs()) last[output.index] = graph.nodes().size();
  std::int64_t alive = 0, peak = 0;
  for (const ValueId input : graph.inputs()) {
    const auto bytes = bytes_of(graph.type(input));
    if (!bytes) return std::nullopt;
    alive += *bytes;
  }
  peak = alive;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const GraphNode& node = graph.nodes()[n];
    for (const ValueId output : graph.outputs(node)) {
      const auto bytes = bytes_of(graph.type(output));
      if (!bytes || __builtin_add_overflow(alive, *bytes, &alive)) return std::nullopt;
    }
    peak = std::max(peak, alive);
    std::vector<ValueId> ending(graph.inputs(node).begin(), graph.inputs(node).end());
    ending.insert(ending.end(), graph.outputs(node).begin(), graph.outputs(node).end());
    std::ranges::sort(ending);
    ending.erase(std::unique(ending.begin(), ending.end()), ending.end());
    for (const ValueId value : ending)
      if (value.present() && last[value.index] <= n && graph.constant(value) == nullptr)
        alive -= bytes_of(graph.type(value)).value_or(0);
  }
  return peak;
}

void add(Inventory& inventory, const Graph& graph) {
  for (std::uint32_t i = 0; i < graph.value_count(); ++i)
    if (const Tensor* constant = graph.constant({i})) {
      inventory.parameters += constant->count();
      inventory.parameter_bytes += static_cast<std::int64_t>(constant->bytes.size());
    }
  for (const GraphNode& node : graph.nodes()) {
    ++inventory.nodes;
    ++inventory.operators[node.op->name];
    for (const auto& subgraph : graph.subgraphs(node)) {
      Inventory inside;  // its work counts as often as it runs
      add(inside, *subgraph);
      inventory.nodes += inside.nodes;
      inventory.parameters += inside.parameters;
      inventory.parameter_bytes += inside.parameter_bytes;
      for (const auto& [name, count] : inside.operators) inventory.operators[name] += count;
    }
    const auto work = work_of_node(graph, node);
    if (work)
      inventory.multiply_adds = inventory.multiply_adds + *work;
    else
      ++inventory.uncounted;
  }
}

}  // namespace

Inventory inspect(const Graph& graph) {
  Inventory inventory;
  add(inventory, graph);
  inventory.activation_bytes = peak_of(graph);
  return inventory;
}

}  // namespace tessera
