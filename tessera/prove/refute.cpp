#include "tessera/prove/refute.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tessera/expr/field.h"
#include "tessera/interp/interp.h"
#include "tessera/ir/bind.h"
#include "tessera/prove/distinguish.h"
#include "tessera/prove/draw.h"
#include "tessera/prove/exactness.h"
#include "tessera/prove/instances.h"

namespace tessera::prove {
namespace {

constexpr std::int64_t kMemoryLimit = std::int64_t{1} << 30;
constexpr std::size_t kMostInstances = 4;

/// A clear difference on an input, in numbers or in shape.
Expected<std::optional<Refuted>> difference(const JointGraph& joint, const SizeValues& sizes,
                                            const std::vector<Tensor>& inputs,
                                            const Options& options) {
  TESSERA_TRY(std::optional<Refuted> found,
              distinguishes(joint, inputs, {.memory_limit = kMemoryLimit, .stop = options.stop}));
  if (!found || !std::isfinite(found->source) || !std::isfinite(found->target))
    return std::optional<Refuted>{};
  found->sizes = sizes;
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
  const JointGraph joint = joint_graph(instance.source, instance.target);
  for (const Numbers numbers :
       {Numbers::Small, Numbers::Fractions, Numbers::Positive, Numbers::Small}) {
    const auto inputs = draw_inputs(instance.source, numbers, rng);
    if (!inputs) return std::nullopt;
    auto found = difference(joint, instance.sizes, *inputs, options);
    if (found && *found) return *std::move(found);
  }
  return std::nullopt;
}

/// Looks for a difference with numbers that a prime field does not have: ties, integers of both
/// signs, the constants of the graphs and what lies near them.
std::optional<Refuted> distinguished_by_recipes(const Instance& instance, const Options& options) {
  std::vector<Type> types;
  for (const ValueId id : instance.source.inputs()) {
    types.push_back(instance.source.type(id));
    if (!types.back().is_ranked_tensor()) return std::nullopt;
  }
  if (!is_small(types)) return std::nullopt;
  const JointGraph joint = joint_graph(instance.source, instance.target);
  for (const Recipe& recipe :
       recipes(options.seed, types.size(), {}, telling_numbers(instance.source, instance.target))) {
    if (options.stop != nullptr && *options.stop) return std::nullopt;
    auto found = difference(joint, instance.sizes, make_inputs(types, recipe), options);
    if (found && *found) return *std::move(found);
  }
  return std::nullopt;
}

}  // namespace

Verdict refute(const Graph& source, const Graph& target, const Guard& guard,
               const Options& options) {
  std::optional<Refuted> refuted, other_shape;
  std::vector<Instance> instances;  // the first ones
  std::optional<Instance> last;     // a larger one
  const Draws draws =
      draw_instances(source, target, guard, options, [&](const Instance& instance, Rng& rng) {
        auto found = distinguished(instance, options, rng);
        if (!found && instances.size() < kMostInstances)
          instances.push_back(instance);
        else if (!found)
          last = instance;
        // Numbers say more than shapes that do not fit.
        if (found && !found->position.empty())
          refuted = std::move(found);
        else if (found && !other_shape)
          other_shape = std::move(found);
        return !refuted;
      });
  if (last) instances.push_back(*std::move(last));
  for (const Instance& instance : instances)
    if (!refuted && options.tries >= kThorough)
      refuted = distinguished_by_recipes(instance, options);
  for (std::optional<Refuted>* found : {&refuted, &other_shape})
    if (*found) return **std::move(found);
  if (draws.no_target) return *draws.no_target;
  if (!draws.why.empty()) return Unknown{draws.why};
  return Unknown{draws.tried == 0
                     ? "no sizes were found that the source takes"
                     : fmt::format("no difference was found on {} choices of sizes", draws.tried)};
}

Expected<bool> replay(const Graph& with_attributes, const Graph& target_with_attributes,
                      const Refuted& refuted) {
  TESSERA_TRY(const Graph source, with_real_operands(with_attributes));
  TESSERA_TRY(const Graph target, with_real_operands(target_with_attributes));
  TESSERA_TRY(const Graph from, bound(source, refuted.sizes));
  const auto to = bound(target, refuted.sizes);
  if (!to || refuted.inputs.empty()) {
    SizeValues sizes = refuted.sizes;
    Rng rng(1);
    return !target_at(sizes, target, rng);
  }
  if (refuted.bits) return differ_in_bits(from, *to, refuted);
  TESSERA_TRY(const std::optional<Refuted> again,
              difference(joint_graph(from, *to), refuted.sizes, refuted.inputs, {}));
  return again && again->output == refuted.output && again->position == refuted.position;
}

}  // namespace tessera::prove
