#include "tessera/prove/refute.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tessera/expr/field.h"
#include "tessera/interp/interp.h"
#include "tessera/ir/bind.h"
#include "tessera/prove/distinguish.h"
#include "tessera/prove/draw.h"
#include "tessera/prove/prove.h"

namespace tessera::prove {
namespace {

/// The two graphs at sizes that are numbers.
struct Instance {
  SizeValues sizes;
  Graph source, target;
};

constexpr std::int64_t kMemoryLimit = std::int64_t{1} << 30;

/// A clear difference on an input, in numbers or in shape.
Expected<std::optional<Refuted>> difference(const Instance& instance,
                                            const std::vector<Tensor>& inputs,
                                            const Options& options) {
  TESSERA_TRY(std::optional<Refuted> found,
              distinguishes(instance.source, instance.target, inputs,
                            {.memory_limit = kMemoryLimit, .stop = options.stop}));
  if (!found || !std::isfinite(found->source) || !std::isfinite(found->target))
    return std::optional<Refuted>{};
  found->sizes = instance.sizes;
  return found;
}

/// Whether the graphs agree on random elements of a prime field, where nothing is rounded and
/// functions are but functions: then there is nothing to look for at these sizes.
bool agree_in_field(const Instance& instance, const Options& options, Rng& rng) {
  std::vector<interp::Value> inputs;
  const auto drawn = draw_inputs(instance.source, Numbers::Small, rng);
  if (!drawn) return false;
  for (const Tensor& tensor : *drawn) {
    if (!is_float(tensor.dtype)) {
      inputs.push_back({tensor});
      continue;
    }
    std::vector<FieldA> elements;
    for (std::int64_t i = 0; i < tensor.count(); ++i)
      elements.push_back(FieldA::of_word(rng.next()));
    inputs.push_back({Tensor::of<FieldA>(tensor.dtype, tensor.shape, elements), true});
  }
  const interp::Options run{.memory_limit = kMemoryLimit, .stop = options.stop};
  const auto source = interp::run_as<FieldA>(instance.source, inputs, run);
  const auto target = interp::run_as<FieldA>(instance.target, inputs, run);
  if (!source || !target) return false;
  return std::ranges::equal(*source, *target, [](const interp::Value& a, const interp::Value& b) {
    return a.datum.is_tensor() && b.datum.is_tensor() && a.lifted == b.lifted &&
           a.datum.tensor().dtype == b.datum.tensor().dtype &&
           a.datum.tensor().shape == b.datum.tensor().shape &&
           std::ranges::equal(a.datum.tensor().as<std::byte>(), b.datum.tensor().as<std::byte>());
  });
}

/// Looks for a difference at one choice of sizes.
std::optional<Refuted> distinguished(const Instance& instance, const Options& options, Rng& rng) {
  if (agree_in_field(instance, options, rng)) return std::nullopt;
  for (const Numbers numbers :
       {Numbers::Small, Numbers::Fractions, Numbers::Positive, Numbers::Small}) {
    const auto inputs = draw_inputs(instance.source, numbers, rng);
    if (!inputs) return std::nullopt;
    auto found = difference(instance, *inputs, options);
    if (found && *found) return *std::move(found);
  }
  return std::nullopt;
}

/// A target that does not take the sizes of the source.
Refuted no_target(const SizeValues& sizes, const Diagnostic& why) {
  Refuted refuted;
  refuted.sizes = sizes;
  refuted.what = fmt::format("the target cannot be built: {}", why.message);
  return refuted;
}

/// The target at the sizes of the source; symbols that only the target has follow from them.
Expected<Graph> target_at(SizeValues& sizes, const Graph& target, Rng& rng) {
  TESSERA_TRY(const Graph sized, bound(target, sizes));
  TESSERA_TRY(const SizeRelations relations, relate_sizes(sized));
  const std::optional<SizeValues> rest = draw_sizes(relations, rng);
  if (!rest)
    return Diagnostic{.id = "sizes-contradict",
                      .message = fmt::format("no sizes satisfy {}", to_text(relations.open))};
  sizes.insert(rest->begin(), rest->end());
  return bound(sized, *rest);
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

}  // namespace

Verdict refute(const Graph& source, const Graph& target, const Guard& guard,
               const Options& options) {
  if (!takes_same_inputs(source, target))
    return Unknown{"the two graphs do not take the same inputs"};
  if (source.outputs().size() != target.outputs().size())
    return Unknown{"the two graphs do not have equally many outputs"};
  auto relations = relate_sizes(source, {}, Broadcasting::Open);
  if (relations) relations = relate_sizes(guard, *relations);
  if (!relations)
    return Unknown{fmt::format("there are no sizes to try: {}", relations.error().message)};

  Rng rng(options.seed);
  const GraphSymbols& symbols = relations->symbols;
  const bool fixed = symbols.sizes.empty() && symbols.attributes.empty() && symbols.entries.empty();
  const SizeRelations fit = fitting(source, target, *relations);
  const Sizes follow = following(*relations, fit);
  std::optional<Refuted> unfit;
  int tried = 0;
  for (int i = 0; i < (fixed ? std::min(options.tries, 2) : options.tries); ++i) {
    if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed)) break;
    std::optional<SizeValues> sizes = draw_sizes(i % 2 == 0 ? fit : *relations, rng);
    if (!sizes) continue;
    const auto sized = bound(source, *sizes);
    if (!sized) continue;
    ++tried;
    const Sizes drawn(sizes->begin(), sizes->end());
    for (const auto& [name, value] : follow)
      if (const auto size = resolved(value, drawn).constant()) sizes->emplace(name, *size);
    const SizeValues known = *sizes;
    const auto made = target_at(*sizes, target, rng);
    if (!made) {
      if (!unfit) unfit = no_target(known, made.error());
      continue;
    }
    // Inputs that only the target reads, or neither does, have sizes too.
    for (const std::string& name : open_sizes(*made)) sizes->emplace(name, 1);
    const auto from = bound(*sized, *sizes), to = bound(*made, *sizes);
    if (!from || !to) continue;
    if (auto found = distinguished({*sizes, *from, *to}, options, rng)) {
      // Numbers say more than shapes that do not fit.
      if (!found->position.empty()) return *std::move(found);
      if (!unfit) unfit = std::move(found);
    }
  }
  if (unfit) return *std::move(unfit);
  return Unknown{tried == 0 ? "no sizes were found that the source takes"
                            : fmt::format("no difference was found on {} choices of sizes", tried)};
}

Expected<bool> replay(const Graph& source, const Graph& target, const Refuted& refuted) {
  TESSERA_TRY(const Graph from, bound(source, refuted.sizes));
  const auto to = bound(target, refuted.sizes);
  if (!to || refuted.inputs.empty()) {
    SizeValues sizes = refuted.sizes;
    Rng rng(1);
    return !target_at(sizes, target, rng);
  }
  TESSERA_TRY(const std::optional<Refuted> again,
              difference({refuted.sizes, from, *to}, refuted.inputs, {}));
  return again && again->output == refuted.output && again->position == refuted.position;
}

}  // namespace tessera::prove
