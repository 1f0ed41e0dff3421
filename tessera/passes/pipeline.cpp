#include "tessera/passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/ir/expand.h"
#include "tessera/ir/rebuild.h"
#include "tessera/ir/verify.h"
#include "tessera/passes/algebra.h"
#include "tessera/passes/batch_norm_to_affine.h"
#include "tessera/passes/blocked_scans.h"
#include "tessera/passes/conv_transpose_subpixel.h"
#include "tessera/passes/cse.h"
#include "tessera/passes/data_movement.h"
#include "tessera/passes/dce.h"
#include "tessera/passes/dense_groups.h"
#include "tessera/passes/dft_to_matmul.h"
#include "tessera/passes/fold.h"
#include "tessera/passes/int8_matmul.h"
#include "tessera/passes/narrow.h"
#include "tessera/passes/recognize.h"
#include "tessera/passes/scan_invariants.h"
#include "tessera/passes/separable_pools.h"
#include "tessera/passes/sequences.h"
#include "tessera/passes/split_windows.h"
#include "tessera/passes/stack_matmuls.h"
#include "tessera/passes/trim_windows.h"
#include "tessera/passes/validate.h"
#include "tessera/support/stopwatch.h"

namespace tessera::passes {
namespace {

/// Arguments of a pass besides the graph. `target` is null outside of Stage::Target.
struct Context {
  const Options& options;
  const TargetContext* target = nullptr;
};

/// A pass is a function from a graph to a graph; it says what it changed.
struct Pass {
  PassInfo info;
  Expected<Graph> (*run)(const Graph& graph, const Context& context, Changes& changes);
  bool is_nested = true;  // runs on the subgraphs of control flow too, one by one
};

/// Machine code may round in another way than the evaluator does.
FoldLimits fold_limits(const Options& options) {
  return {.most_bytes = options.most_folded_bytes, .rounds = !options.exact};
}

Expected<Graph> fold(const Graph& graph, const Context& context, Changes& changes) {
  return Rewriter(graph, {fold_rewrite(fold_limits(context.options), changes)}).run();
}

Expected<Graph> data_movement(const Graph& graph, const Context&, Changes& changes) {
  return Rewriter(graph, {sequence_rewrite(changes), data_movement_rewrite(changes)}).run();
}

Expected<Graph> cse(const Graph& graph, const Context&, Changes& changes) {
  return Rewriter(graph, {cse_rewrite(changes)}).run();
}

Expected<Graph> dce(const Graph& graph, const Context&, Changes&) {
  return without_dead(graph);
}

Expected<Graph> recognize(const Graph& graph, const Context&, Changes& changes) {
  return recognized(graph, changes);
}

/// Until nothing changes: a value that is used less often may let more rules match.
Expected<Graph> algebra(const Graph& graph, const Context& context, Changes& changes) {
  constexpr int kMostIterations = 4;
  const Options& options = context.options;
  Graph current = graph;
  for (int i = 0; i < kMostIterations; ++i) {
    Changes now;
    TESSERA_TRY(Rewriter::Rewrite rules,
                rule_rewrite({.exact = options.exact, .disabled = options.disabled_rules}, now));
    Changes folded, moved;
    std::vector<Rewriter::Rewrite> all = {fold_rewrite(fold_limits(options), folded),
                                          data_movement_rewrite(moved), std::move(rules)};
    TESSERA_TRY(current, Rewriter(current, std::move(all)).run());
    changes.insert(changes.end(), now.begin(), now.end());
    if (now.empty()) break;
  }
  return current;
}

/// Composites ask for sizes of their operands. Weights are left to `constants`.
Expected<Graph> fold_sizes(const Graph& graph, const Context&, Changes& changes) {
  constexpr std::int64_t kMostNumbers = 16;
  return Rewriter(
             graph,
             {fold_rewrite(
                 {.most_bytes = kMostNumbers * 8, .most_numbers = kMostNumbers, .rounds = false},
                 changes)})
      .run();
}

/// A rewrite that takes the graph alone.
template <auto kRewrite>
Expected<Graph> plain(const Graph& graph, const Context&, Changes&) {
  return kRewrite(graph);
}

/// Expansion infers all types again, which a graph of core operators and static shapes can do
/// without.
Expected<Graph> expand_composites(const Graph& graph) {
  bool is_core = std::ranges::all_of(graph.nodes(), [&](const GraphNode& node) {
    return node.op->kind() == OpDef::Kind::Core && graph.subgraphs(node).empty();
  });
  for (std::uint32_t v = 0; is_core && v < graph.value_count(); ++v)
    is_core = static_shape(graph.type(ValueId{v})).has_value();
  if (is_core) return graph;
  return expand(graph, is_composite, NeedsValue::Keep);
}

Expected<Graph> constants(const Graph& graph, const Context& context, Changes&) {
  return context.target->evaluate_constants(graph);
}

/// Most graphs have nothing to remove, and are not copied. Where constants are assumed, their
/// content is not known.
Expected<Graph> neutral(const Graph& graph, const Context& context, Changes& changes) {
  const Options& options = context.options;
  if (context.target->assumes_constants) return graph;
  TESSERA_TRY(const bool may_have, may_have_neutral_operands(graph, options.exact));
  if (!may_have) return graph;
  Changes folded;
  TESSERA_TRY(Rewriter::Rewrite rules,
              rule_rewrite(
                  {.exact = options.exact, .projections = true, .disabled = options.disabled_rules},
                  changes));
  return Rewriter(graph, {fold_rewrite(fold_limits(options), folded), std::move(rules)}).run();
}

Expected<Graph> dense_groups_of(const Graph& graph, const Context& context, Changes&) {
  return dense_groups(graph, context.target->machine);
}

Expected<Graph> scan_invariants_of(const Graph& graph, const Context& context, Changes&) {
  return scan_invariants(graph, fold_limits(context.options));
}

using enum Stage;
using N = NumericsClass;
using T = TargetClass;
constexpr bool kWhole = false;  // the pass visits subgraphs itself, or must not visit them

/// In this order.
constexpr Pass kPasses[] = {
    // Unused weights first: nothing else looks at them.
    {{"dce", Canonical, N::Exact, T::Any, "removes nodes without a use"}, dce},
    // Sizes become numbers, which what follows asks for.
    {{"fold", Canonical, N::Exact, T::Any, "computes what depends on constants and sizes"}, fold},
    {{"data_movement", Canonical, N::Exact, T::Any, "merges transposes, reshapes and slices"},
     data_movement},
    {{"cse", Canonical, N::Exact, T::Any, "computes equal expressions once"}, cse},
    // Constants that belong together meet.
    {{"algebra", Algebra, N::PerRule, T::Any, "applies the proved rules"}, algebra},
    {{"recognize", Algebra, N::Reals, T::Any, "finds softmax, norms, attention, … by proof"},
     recognize},
    // Folds the constants that rules bring together.
    {{"algebra", Algebra, N::PerRule, T::Any, "applies the proved rules"}, algebra},
    {{"narrow", Algebra, N::Exact, T::Any, "computes only the parts of results that are read"},
     plain<narrow>},
    // Rules make the same thing in several places.
    {{"cse", Algebra, N::Exact, T::Any, "computes equal expressions once"}, cse},
    {{"dce", Algebra, N::Exact, T::Any, "removes nodes without a use"}, dce},

    {{"batch_norm_to_affine", Target, N::Reals, T::Any, "batch norm as multiply and add"},
     plain<batch_norm_to_affine>},
    {{"expand", Target, N::Exact, T::Any, "replaces composites by core operators"},
     plain<expand_composites>,
     kWhole},
    {{"fold_sizes", Target, N::Exact, T::Any, "computes the sizes that composites ask for"},
     fold_sizes},
    {{"narrow", Target, N::Exact, T::Any, "computes only the parts of results that are read"},
     plain<narrow>},
    {{"int8_matmul", Target, N::Reals, T::Any, "matmul and conv of dequantized bytes on integers"},
     plain<int8_matmul>},
    {{"constants", Target, N::Exact, T::Any, "computes constant subgraphs by machine code"},
     constants,
     kWhole},
    // Composites bring masks that mask nothing and scales of 1.
    {{"neutral", Target, N::PerRule, T::Any, "removes operators that leave an operand as it is"},
     neutral},
    {{"dft_to_matmul", Target, N::Reals, T::Any, "Fourier transforms as matmul and conv"},
     plain<dft_to_matmul>},
    {{"blocked_scans", Target, N::Reals, T::Any, "long prefix sums in blocks"},
     plain<blocked_scans>},
    {{"separable_pools", Target, N::Exact, T::Cpu, "max pools of large windows, axis by axis"},
     plain<separable_pools>},
    {{"conv_transpose_subpixel", Target, N::Reals, T::Any, "sub-pixel decomposition"},
     plain<conv_transpose_subpixel>},
    {{"trim_windows", Target, N::Reals, T::Any, "drops window positions that read padding only"},
     plain<trim_windows>},
    {{"split_windows", Target, N::Reals, T::Cpu, "convolutions that read mostly padding, by tap"},
     plain<split_windows>},
    {{"dense_groups", Target, N::Reals, T::Any, "dense form of convolutions in narrow groups"},
     dense_groups_of},
    {{"scan_invariants", Target, N::Exact, T::Any, "takes loop invariants out of scans"},
     scan_invariants_of},
    {{"stack_matmuls", Target, N::Reals, T::Gpu, "horizontal fusion of matmuls of one operand"},
     plain<stack_matmuls>},
};

bool is_for(TargetClass target, const machine::Machine& machine) {
  return target == TargetClass::Any || (target == TargetClass::Gpu) == machine.is_gpu();
}

bool is_skipped(const PassInfo& info, const Context& context) {
  return context.options.disabled.contains(std::string(info.name)) ||
         (context.options.exact && info.numerics == NumericsClass::Reals) ||
         (context.target != nullptr && !is_for(info.target, context.target->machine));
}

/// A pass on the graph and, if it is nested, on the subgraphs of control flow.
Expected<Graph> run_nested(const Pass& pass, const Graph& graph, const Context& context,
                           Changes& changes) {
  TESSERA_TRY(Graph made, pass.run(graph, context, changes));
  const bool has_subgraphs = std::ranges::any_of(
      made.nodes(), [&](const GraphNode& node) { return !made.subgraphs(node).empty(); });
  if (!pass.is_nested || !has_subgraphs) return made;
  std::optional<Diagnostic> error;
  Graph whole = rebuild(made, [&](Rebuilder& out, const GraphNode& node) {
    if (made.subgraphs(node).empty()) return out.copy(node);
    Graph::NewNode copy{.op = node.op, .attrs = *node.attrs, .inputs = out.inputs_of(node)};
    for (const ValueId id : made.outputs(node)) copy.outputs.push_back(made.type(id));
    for (const auto& subgraph : made.subgraphs(node)) {
      auto inner = run_nested(pass, *subgraph, context, changes);
      if (!inner && !error) error = inner.error();
      copy.subgraphs.push_back(inner ? std::make_shared<const Graph>(*std::move(inner)) : subgraph);
    }
    return out.add(std::move(copy));
  });
  if (error) return *error;
  return whole;
}

/// The one runner: skips, times, verifies, validates and reports every pass alike.
Expected<Done> run_pass(const Pass& pass, const Context& context, Optimized& result) {
  const Options& options = context.options;
  Record record{.pass = std::string(pass.info.name), .nodes_before = result.graph.nodes().size()};
  const Stopwatch watch;
  TESSERA_TRY(Graph after, run_nested(pass, result.graph, context, record.changes));
  record.seconds = watch.seconds();
  record.nodes_after = after.nodes().size();
  record.changed = record.nodes_after != record.nodes_before || after.hash() != result.graph.hash();
  if (context.target != nullptr && context.target->assumes_constants) {
    result.graph = std::move(after);
    return Done{};
  }
  const auto valid = verify(after);
  TESSERA_CHECK(valid, "after {}: {}", record.pass, to_string(valid.error()));
  if (options.validate) {
    TESSERA_TRY(record.validation, validated(record.pass, result.graph, after));
  }
  result.graph = std::move(after);
  if (options.observe) options.observe(record.pass, result.graph);
  result.log.push_back(std::move(record));
  return Done{};
}

}  // namespace

std::string_view to_string(Stage stage) {
  constexpr std::string_view kNames[] = {"canonical", "algebra", "target"};
  return kNames[static_cast<std::size_t>(stage)];
}

std::string_view to_string(NumericsClass numerics) {
  constexpr std::string_view kNames[] = {"exact", "reals", "per rule"};
  return kNames[static_cast<std::size_t>(numerics)];
}

std::string_view to_string(TargetClass target) {
  constexpr std::string_view kNames[] = {"any", "cpu", "gpu"};
  return kNames[static_cast<std::size_t>(target)];
}

std::span<const PassInfo> pass_list() {
  static const std::vector<PassInfo> kList = [] {
    std::vector<PassInfo> list;
    for (const Pass& pass : kPasses) list.push_back(pass.info);
    return list;
  }();
  return kList;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses)
    if (std::ranges::find(names, pass.info.name) == names.end()) names.emplace_back(pass.info.name);
  return names;
}

Expected<Optimized> optimize(const Graph& graph, const Options& options) {
  Optimized result{.graph = graph};
  const Context context{.options = options};
  for (const Pass& pass : kPasses)
    if (pass.info.stage != Stage::Target && !is_skipped(pass.info, context))
      TESSERA_TRY_DONE(run_pass(pass, context, result));
  return result;
}

Expected<Optimized> optimize_for_target(const Graph& graph, const Options& options,
                                        const TargetContext& target) {
  Optimized result{.graph = graph};
  const Context context{.options = options, .target = &target};
  for (const Pass& pass : kPasses)
    if (pass.info.stage == Stage::Target && !is_skipped(pass.info, context))
      TESSERA_TRY_DONE(run_pass(pass, context, result));
  return result;
}

}  // namespace tessera::passes
