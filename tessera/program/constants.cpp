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

/// Largest growth in bytes of what is kept.
constexpr std::int64_t kMostGrowth = std::int64_t{1} << 20;
/// Largest growth in bytes of what is used at compile time alone, of a node and in all.
constexpr std::int64_t kMostTemporary = std::int64_t{1} << 28,
                       kMostTemporaries = std::int64_t{1} << 30;
/// Largest total growth in bytes by converting weights of small types at compile time; beyond it,
/// they are converted in each run.
constexpr std::int64_t kMostWidening = std::int64_t{1} << 30, kWidest = 8;  // f64 of a byte
constexpr std::int64_t kSmall = 64;  // elements that planning may look at

std::optional<std::int64_t> bytes_of(const Type& type) {
  const auto shape = static_shape(type);
  if (!shape || type.dtype == DType::String) return std::nullopt;
  const auto count = element_count(*shape);
  return count ? std::optional(*count * byte_width(type.dtype)) : std::nullopt;
}

/// Work of a node on constants.
struct ConstantWork {
  std::int64_t read = 0, made = 0;  // constants that it is computed from, and results, in bytes
  bool widens = false;              // converts a small type to at most eight times its bytes
  bool is_kept = false;             // its results replace it; otherwise it runs with the program

  std::int64_t growth() const { return made - read; }
};
using ConstantWorks = std::vector<std::optional<ConstantWork>>;  // by node; none: not constant

/// Nodes that are computed from constants alone, within the limits of what is temporary.
ConstantWorks nodes_of_constants(const Graph& graph) {
  std::int64_t all = 0;  // bytes of constants; a node that reads one twice is computed from no more
  for (std::size_t i = 0; i < graph.value_count(); ++i)
    if (const Tensor* constant = graph.constant({static_cast<std::uint32_t>(i)}))
      all += static_cast<std::int64_t>(constant->bytes.size());
  std::vector<std::optional<std::int64_t>> leaves(graph.value_count());  // constants it is made of
  ConstantWorks works;
  std::int64_t temporaries = 0, widening = 0;
  for (const GraphNode& node : graph.nodes()) {
    ConstantWork work;
    bool known = node.op->pure && graph.subgraphs(node).empty();
    for (const ValueId input : graph.inputs(node)) {
      if (!known || !input.present()) continue;
      if (const Tensor* constant = graph.constant(input))
        leaves[input.index] = static_cast<std::int64_t>(constant->bytes.size());
      known = leaves[input.index].has_value();
      work.widens = work.widens || is_small(graph.type(input).dtype);
      work.read = std::min(all, work.read + leaves[input.index].value_or(0));
    }
    for (const ValueId output : graph.outputs(node)) {
      const auto bytes = known ? bytes_of(graph.type(output)) : std::nullopt;
      known = bytes.has_value();
      work.made += bytes.value_or(0);
    }
    work.widens = work.widens && work.made <= kWidest * work.read &&
                  widening + work.growth() <= kMostWidening;
    if (known && work.growth() > kMostGrowth) {
      (work.widens ? widening : temporaries) += work.growth();
      known = work.widens || (work.growth() <= kMostTemporary && temporaries <= kMostTemporaries);
    }
    works.push_back(known ? std::optional(work) : std::nullopt);
    if (known)
      for (const ValueId output : graph.outputs(node)) leaves[output.index] = work.read;
  }
  return works;
}

/// The same, with the decision which of them are kept: those that no node reads at run time, and
/// those that are not much larger than what they are computed from.
ConstantWorks constant_works(const Graph& graph) {
  ConstantWorks works = nodes_of_constants(graph);
  std::vector<bool> is_read(graph.value_count());  // at run time
  for (const ValueId output : graph.outputs()) is_read[output.index] = true;
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const GraphNode& node = graph.nodes()[n];
    if (auto& work = works[n]) {
      work->is_kept =
          work->growth() <= kMostGrowth || work->widens ||
          std::ranges::none_of(graph.outputs(node), [&](ValueId id) { return is_read[id.index]; });
      if (work->is_kept) continue;
    }
    for (const ValueId input : graph.inputs(node))
      if (input.present()) is_read[input.index] = true;
  }
  return works;
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

/// Results of a node on constants whose content is known.
std::optional<std::vector<Tensor>> evaluated(const Graph& graph, const GraphNode& node,
                                             const KnownTensors& known) {
  std::vector<interp::Value> inputs;
  for (const ValueId input : graph.inputs(node)) {
    if (!input.present()) {
      inputs.emplace_back();
      continue;
    }
    const Tensor* constant = graph.constant(input);
    if (constant == nullptr && !known[input.index]) return std::nullopt;
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
  const ConstantWorks works = constant_works(graph);
  KnownTensors known(graph.value_count()), kept(graph.value_count());
  for (std::size_t n = 0; n < works.size(); ++n) {
    if (!works[n]) continue;
    const GraphNode& node = graph.nodes()[n];
    const auto outputs = graph.outputs(node);
    const bool small = std::ranges::all_of(outputs, [&](ValueId output) {
      return *element_count(*static_shape(graph.type(output))) <= kSmall;
    });
    const auto tensors = small ? evaluated(graph, node, known) : std::nullopt;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (tensors) known[outputs[i].index] = (*tensors)[i];
      if (works[n]->is_kept)
        kept[outputs[i].index] = tensors ? (*tensors)[i] : zeros(graph.type(outputs[i]));
    }
  }
  const bool some =
      std::ranges::any_of(kept, [](const auto& tensor) { return tensor.has_value(); });
  return some ? replaced(graph, kept) : graph;
}

Expected<Graph> evaluate_constants(const Graph& graph, const CompileOptions& options) {
  const ConstantWorks works = constant_works(graph);
  const auto is_kept = [&](std::size_t n) { return works[n] && works[n]->is_kept; };
  std::vector<bool> is_read(graph.value_count());  // at run time
  for (std::size_t n = 0; n < works.size(); ++n)
    for (const ValueId input : graph.inputs(graph.nodes()[n]))
      if (input.present() && !is_kept(n)) is_read[input.index] = true;
  for (const ValueId output : graph.outputs()) is_read[output.index] = true;
  const auto has = [&](std::size_t n, const std::vector<bool>& values) {
    return std::ranges::any_of(graph.outputs(graph.nodes()[n]),
                               [&](ValueId output) { return values[output.index]; });
  };
  // Nodes that make what is read, and what they need.
  std::vector<bool> is_needed(graph.value_count()), is_made(works.size());
  for (std::size_t n = works.size(); n-- > 0;) {
    is_made[n] = works[n] && (has(n, is_needed) || (is_kept(n) && has(n, is_read)));
    if (!is_made[n]) continue;
    for (const ValueId input : graph.inputs(graph.nodes()[n]))
      if (input.present()) is_needed[input.index] = true;
  }
  if (std::ranges::count(is_made, true) == 0) return graph;

  // The part that makes them, as a graph without inputs.
  Graph part;
  std::vector<ValueId> mapped(graph.value_count()), outputs, ids;
  for (std::size_t n = 0; n < works.size(); ++n) {
    if (!is_made[n]) continue;
    const GraphNode& node = graph.nodes()[n];
    const auto results = part.add_node(copied_node(graph, node, [&](ValueId input) {
      if (!mapped[input.index].present())
        mapped[input.index] = part.add_constant(*graph.constant(input), {});
      return mapped[input.index];
    }));
    for (std::size_t i = 0; i < results.size(); ++i) {
      const ValueId output = graph.outputs(node)[i];
      mapped[output.index] = results[i];
      if (is_kept(n) && is_read[output.index]) {
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
  // The others have no readers at run time.
  for (std::size_t n = 0; n < works.size(); ++n)
    for (const ValueId output : graph.outputs(graph.nodes()[n]))
      if (is_kept(n) && !tensors[output.index]) tensors[output.index] = zeros(graph.type(output));
  // Sizes that follow from the new constants are known now.
  return bound(replaced(graph, tensors), Binding{});
}

}  // namespace tessera::program
