#include "tessera/prove/instances.h"

#include <algorithm>
#include <set>

#include "tessera/ir/bind.h"
#include "tessera/ir/expand.h"
#include "tessera/prove/draw.h"

namespace tessera::prove {
namespace {

/// A target that does not take the sizes of the source.
Refuted no_target(const SizeValues& sizes, const Diagnostic& why) {
  Refuted refuted;
  refuted.sizes = sizes;
  refuted.what = fmt::format("the target cannot be built: {}", why.message);
  return refuted;
}

std::set<std::string> open_sizes(const Graph& graph) {
  std::set<std::string> names;
  for (const ValueId id : graph.inputs())
    for (const Dim& dim : graph.type(id).shape.value_or(Shape{})) dim.collect_symbols(names);
  return names;
}

/// What holds where the target fits too; what is given where it never does.
SizeRelations fitting(const Graph& source, const Graph& target, const SizeRelations& given) {
  const auto all = relate_sizes(target, given);
  if (!all) return given;
  const auto equal_outputs = relate_outputs(source, target, *all);
  return equal_outputs ? *equal_outputs : *all;
}

/// Symbols that only the target has, in terms of those of the source.
Sizes following(const SizeRelations& given, const SizeRelations& all) {
  Sizes parts, result;
  for (const auto& [name, part] : all.parts) parts.emplace(name, part.quotient());
  for (const auto& [name, value] : all.solved)
    if (!given.symbols.contains(name) && !given.parts.contains(name))
      result.emplace(name, resolved(value, parts));
  return result;
}

bool takes_same_inputs(const Graph& source, const Graph& target) {
  return std::ranges::equal(source.inputs(), target.inputs(),
                            [&](ValueId a, ValueId b) { return source.type(a) == target.type(b); });
}

/// Whether all sizes and attributes are numbers, so that there is nothing to put in.
bool is_sized(const Graph& graph) {
  return open_sizes(graph).empty() &&
         std::ranges::all_of(graph.nodes(), [&](const GraphNode& node) {
           return node.attrs->symbolic() == nullptr && graph.subgraphs(node).empty();
         });
}

bool has_sizes_of_at_least_one(const Graph& graph) {
  return std::ranges::all_of(graph.inputs(), [&](ValueId id) {
    return std::ranges::all_of(graph.type(id).shape.value_or(Shape{}),
                               [](const Dim& size) { return size.constant().value_or(0) >= 1; });
  });
}

Expected<Graph> sized(const Graph& graph, const SizeValues& sizes) {
  if (is_sized(graph)) return graph;
  return bound(graph, sizes);
}

/// The target beside a source whose sizes are numbers; nothing where there is none.
std::optional<Instance> instance_at(SizeValues sizes, const Graph& source, const Graph& target,
                                    Rng& rng, Draws& draws) {
  const SizeValues known = sizes;
  const auto made = target_at(sizes, target, rng);
  if (!made) {
    if (!draws.no_target) draws.no_target = no_target(known, made.error());
    return std::nullopt;
  }
  // Inputs that only the target reads, or neither does, have sizes too.
  for (const std::string& name : open_sizes(*made)) sizes.emplace(name, 1);
  auto from = sized(source, sizes), to = sized(*made, sizes);
  if (!from || !to) return std::nullopt;
  return Instance{std::move(sizes), *std::move(from), *std::move(to)};
}

}  // namespace

Expected<Graph> with_real_operands(const Graph& graph) {
  std::set<const OpDef*> ops;
  for (const GraphNode& node : graph.nodes())
    for (const Attrs::Entry& attribute : node.attrs->entries())
      if (is_named_real(*node.op, attribute)) ops.insert(node.op);
  if (ops.empty()) return graph;
  return expand(graph, [&](const OpDef& op) { return ops.contains(&op); });
}

Expected<Graph> target_at(SizeValues& sizes, const Graph& target, Rng& rng) {
  TESSERA_TRY(Graph sized, bound(target, sizes));
  if (is_sized(sized) && has_sizes_of_at_least_one(sized)) {
    draw_sizes({}, rng);  // of no symbols; later draws are as if there had been some
    return sized;
  }
  TESSERA_TRY(const SizeRelations relations, relate_sizes(sized));
  const std::optional<SizeValues> rest = draw_sizes(relations, rng);
  if (!rest)
    return Diagnostic{.id = "sizes-contradict",
                      .message = fmt::format("no sizes satisfy {}", to_text(relations.open))};
  sizes.insert(rest->begin(), rest->end());
  return bound(sized, *rest);
}

Draws draw_instances(const Graph& with_attributes, const Graph& target_with_attributes,
                     const Guard& guard, const Options& options,
                     const std::function<bool(const Instance&, Rng&)>& visit) {
  const auto from = with_real_operands(with_attributes),
             to = with_real_operands(target_with_attributes);
  if (!from || !to) return {.why = (from ? to : from).error().message};
  const Graph &source = *from, &target = *to;
  if (!takes_same_inputs(source, target))
    return {.why = "the two graphs do not take the same inputs"};
  if (source.outputs().size() != target.outputs().size())
    return {.why = "the two graphs do not have equally many outputs"};
  auto relations = relate_sizes(source, {}, Broadcasting::Open);
  if (relations) relations = relate_sizes(guard, *relations);
  if (!relations)
    return {.why = fmt::format("there are no sizes to try: {}", relations.error().message)};

  Rng rng(options.seed);
  const GraphSymbols& symbols = relations->symbols;
  const bool fixed = symbols.sizes.empty() && symbols.attributes.empty() && symbols.entries.empty();
  const SizeRelations fit = fitting(source, target, *relations);
  const Sizes follow = following(*relations, fit);
  Draws draws;
  const int larger = options.tries >= kThorough ? kLargerTries : 0;
  for (int i = 0; i < (fixed ? std::min(options.tries, 2) : options.tries + larger); ++i) {
    if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed)) break;
    const auto draw = i < options.tries ? draw_sizes : draw_larger_sizes;
    std::optional<SizeValues> sizes = draw(i % 2 == 0 ? fit : *relations, rng);
    if (!sizes) continue;
    const auto sized = bound(source, *sizes);
    if (!sized) continue;
    ++draws.tried;
    const Sizes drawn(sizes->begin(), sizes->end());
    for (const auto& [name, value] : follow)
      if (const auto size = resolved(value, drawn).constant()) sizes->emplace(name, *size);
    const auto instance = instance_at(*std::move(sizes), *sized, target, rng, draws);
    if (instance && !visit(*instance, rng)) break;
  }
  return draws;
}

}  // namespace tessera::prove
