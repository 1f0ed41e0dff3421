#include "tessera/program/constants.h"

#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <new>
#include <optional>

#include "tessera/engine/engine.h"
#include "tessera/interp/interp.h"
#include "tessera/ir/bind.h"
#include "tessera/ir/rebuild.h"
#include "tessera/program/plan.h"
#include "tessera/program/stage.h"

namespace tessera::program {
namespace {

/// Largest growth in bytes of what is kept, and of what is used at compile time alone.
constexpr std::int64_t kMostGrowth = std::int64_t{1} << 20, kMostTemporary = std::int64_t{1} << 28;
/// Largest total growth in bytes by converting weights of small types at compile time; beyond it,
/// they are converted in each run.
constexpr std::int64_t kMostWidening = std::int64_t{1} << 30;
constexpr std::int64_t kSmall = 64;  // elements that planning may look at

std::optional<std::int64_t> bytes_of(const Type& type) {
  const auto shape = static_shape(type);
  if (!shape || type.dtype == DType::String) return std::nullopt;
  const auto count = element_count(*shape);
  return count ? std::optional(*count * byte_width(type.dtype)) : std::nullopt;
}

/// Constants that a node is computed from and results that it makes, in bytes.
struct ConstantNode {
  std::int64_t read = 0, made = 0;
  bool widens = false;  // converts a small type
};

/// By node: what it is computed from, where that is constants alone.
std::vector<std::optional<ConstantNode>> constant_nodes(
    const Graph& graph, std::vector<std::optional<std::int64_t>>& leaves) {
  std::vector<std::optional<ConstantNode>> nodes;
  for (const GraphNode& node : graph.nodes()) {
    ConstantNode work;
    bool known = node.op->pure && graph.subgraphs(node).empty();
    for (const ValueId input : graph.inputs(node)) {
      if (!known || !input.present()) continue;
      if (const Tensor* constant = graph.constant(input))
        leaves[input.index] = static_cast<std::int64_t>(constant->bytes.size());
      known = leaves[input.index].has_value();
      work.widens = work.widens || is_small(graph.type(input).dtype);
      work.read += leaves[input.index].value_or(0);
    }
    for (const ValueId output : graph.outputs(node)) {
      const auto bytes = known ? bytes_of(graph.type(output)) : std::nullopt;
      known = bytes.has_value();
      work.made += bytes.value_or(0);
    }
    known = known && work.made <= work.read + kMostTemporary;
    nodes.push_back(known ? std::optional(work) : std::nullopt);
    if (known)
      for (const ValueId output : graph.outputs(node)) leaves[output.index] = work.read;
  }
  return nodes;
}

/// By value: size in bytes of the constants that it is computed from; none if it is not constant,
/// or needed at run time and much larger than they are.
std::vector<std::optional<std::int64_t>> constant_work(const Graph& graph) {
  std::vector<std::optional<std::int64_t>> leaves(graph.value_count());
  const auto nodes = constant_nodes(graph, leaves);
  std::vector<bool> is_read(graph.value_count());  // at run time
  for (const ValueId output : graph.outputs()) is_read[output.index] = true;
  std::int64_t widening = 0;
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const GraphNode& node = graph.nodes()[n];
    const auto outputs = graph.outputs(node);
    bool is_kept = nodes[n].has_value();
    if (is_kept && nodes[n]->made > nodes[n]->read + kMostGrowth &&
        std::ranges::any_of(outputs, [&](ValueId output) { return is_read[output.index]; })) {
      const auto& [read, made, widens] = *nodes[n];
      constexpr std::int64_t kWidest = 8;  // f64 of a byte
      is_kept = widens && made <= kWidest * read && widening + made - read <= kMostWidening;
      if (is_kept) widening += made - read;
    }
    if (is_kept) continue;
    for (const ValueId output : outputs) leaves[output.index].reset();
    for (const ValueId input : graph.inputs(node))
      if (input.present()) is_read[input.index] = true;
  }
  return leaves;
}

using KnownTensors = std::vector<std::optional<Tensor>>;  // by value

/// The graph with these values for constants.
Graph replaced(const Graph& graph, const KnownTensors& tensors) {
  const auto is_replaced = [&](const GraphNode& node) {
    const auto outputs = graph.outputs(node);
    return !outputs.empty() && std::ranges::all_of(outputs, [&](ValueId output) {
      return tensors[output.index].has_value();
    });
  };
  return rebuild(graph, [&](Rebuilder& out, const GraphNode& node) -> Rebuilder::Results {
    if (!is_replaced(node)) return out.copy(node);
    Rebuilder::Results results;
    for (const ValueId output : graph.outputs(node))
      results.push_back(out.constant(*tensors[output.index]));
    return results;
  });
}

/// Zeros that take no memory as long as nobody looks.
Tensor zeros(const Type& type) {
  const auto shape = *static_shape(type);
  const auto bytes = static_cast<std::size_t>(*bytes_of(type));
  void* memory = ::mmap(nullptr, std::max<std::size_t>(bytes, 1), PROT_READ,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const std::shared_ptr<const void> owner(memory, [bytes](const void* mapped) {
    ::munmap(const_cast<void*>(mapped), std::max<std::size_t>(bytes, 1));
  });
  return {type.dtype, shape, Bytes(owner, {static_cast<const std::byte*>(memory), bytes})};
}

/// Results of a node on small constants.
std::optional<std::vector<Tensor>> evaluated(const Graph& graph, const GraphNode& node,
                                             const KnownTensors& known) {
  std::vector<interp::Value> inputs;
  for (const ValueId input : graph.inputs(node)) {
    if (!input.present()) {
      inputs.emplace_back();
      continue;
    }
    const Tensor* constant = graph.constant(input);
    inputs.push_back({.datum = constant != nullptr ? *constant : *known[input.index]});
  }
  const auto results = interp::run_op<double>(*node.op, *node.attrs, inputs,
                                              static_cast<int>(graph.outputs(node).size()), {});
  if (!results) return std::nullopt;
  std::vector<Tensor> tensors;
  for (const interp::Value& result : *results) {
    if (!result.datum.is_tensor()) return std::nullopt;
    tensors.push_back(result.datum.tensor());
  }
  return tensors;
}

}  // namespace

Expected<Graph> assume_constants(const Graph& graph) {
  const auto leaves = constant_work(graph);
  KnownTensors known(graph.value_count());
  bool some = false;
  for (const GraphNode& node : graph.nodes()) {
    const auto outputs = graph.outputs(node);
    if (outputs.empty() || !leaves[outputs[0].index]) continue;
    some = true;
    const bool small = std::ranges::all_of(outputs, [&](ValueId output) {
      return *element_count(*static_shape(graph.type(output))) <= kSmall;
    });
    const auto tensors = small ? evaluated(graph, node, known) : std::nullopt;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      known[outputs[i].index] = tensors ? (*tensors)[i] : zeros(graph.type(outputs[i]));
  }
  return some ? replaced(graph, known) : graph;
}

Expected<Graph> evaluate_constants(const Graph& graph, const CompileOptions& options) {
  const auto leaves = constant_work(graph);
  const auto is_made = [&](ValueId value) {
    return value.present() && leaves[value.index] && graph.constant(value) == nullptr;
  };
  std::vector<bool> wanted(graph.value_count());
  const auto want = [&](ValueId value) {
    if (is_made(value)) wanted[value.index] = true;
  };
  for (const GraphNode& node : graph.nodes())
    if (graph.outputs(node).empty() || !is_made(graph.outputs(node)[0]))
      for (const ValueId input : graph.inputs(node)) want(input);
  for (const ValueId output : graph.outputs()) want(output);
  if (std::ranges::count(wanted, true) == 0) return graph;

  // The part that makes them, as a graph without inputs.
  Graph part;
  std::vector<ValueId> mapped(graph.value_count()), outputs, ids;
  for (const GraphNode& node : graph.nodes()) {
    if (graph.outputs(node).empty() || !is_made(graph.outputs(node)[0])) continue;
    const auto results = part.add_node(copied_node(graph, node, [&](ValueId input) {
      if (!mapped[input.index].present())
        mapped[input.index] = part.add_constant(*graph.constant(input), {});
      return mapped[input.index];
    }));
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ValueId output = graph.outputs(node)[i];
      mapped[output.index] = results[i];
      if (wanted[output.index]) {
        outputs.push_back(results[i]);
        ids.push_back(output);
      }
    }
  }
  part.set_outputs(std::move(outputs));

  CompileOptions once{.machine = machine::host(),
                      .threads = options.threads,
                      .passes = {.exact = options.passes.exact},
                      .cache = options.cache,
                      .stop = options.stop};
  TESSERA_TRY(Compiled compiled, compile_core_graph(part, once));
  TESSERA_TRY(const auto loaded, runtime::LoadedProgram::load(std::move(compiled.program)));
  TESSERA_TRY(const auto session, engine::make_session(loaded, {.threads = options.threads}));
  TESSERA_TRY(const std::vector<Datum> made, session->run(std::span<const Datum>{}));
  KnownTensors tensors(graph.value_count());
  for (std::size_t i = 0; i < ids.size(); ++i) tensors[ids[i].index] = made[i].tensor();
  // The other results of such a node have no readers but in the part.
  for (const GraphNode& node : graph.nodes())
    for (const ValueId output : graph.outputs(node))
      if (is_made(output) && !tensors[output.index])
        tensors[output.index] = zeros(graph.type(output));
  // Sizes that follow from the new constants are known now.
  return bound(replaced(graph, tensors), Binding{});
}

}  // namespace tessera::program
