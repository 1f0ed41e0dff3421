#include "tessera/prove/model_runs.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tessera/prove/constants.h"
#include "tessera/prove/distinguish.h"
#include "tessera/prove/size_cases.h"
#include "tessera/support/cpu_time.h"

namespace tessera::prove {
namespace {

constexpr std::int64_t kMostPrinted = 1 << 20;  // elements of a constant that gets a fingerprint

/// Bytes of all results of a graph in double; open sizes are small when it is run.
std::int64_t result_bytes(const Graph& graph) {
  constexpr std::int64_t kOpenSize = 16, kMostElements = std::int64_t{1} << 40;
  std::int64_t elements = 0;
  for (const GraphNode& node : graph.nodes())
    for (const ValueId id : graph.outputs(node)) {
      std::int64_t count = 1;
      for (const Dim& dim : graph.type(id).shape.value_or(Shape{}))
        if (__builtin_mul_overflow(count, dim.constant().value_or(kOpenSize), &count))
          return kMostElements;
      elements = std::min(elements + count, kMostElements);
    }
  return elements * static_cast<std::int64_t>(sizeof(double));
}

}  // namespace

ModelRuns::ModelRuns(const Aligned& aligned, const SweepOptions& options)
    : aligned_(aligned), options_(options) {
  // Sizes that are read from integers may be anything: such results are not computed for minutes.
  constexpr std::int64_t kLeast = std::int64_t{1} << 28;
  const std::int64_t needed = result_bytes(aligned.source) + result_bytes(aligned.target);
  memory_limit_ = std::min(options.memory_limit, kLeast + 2 * needed);
}

Verdict ModelRuns::confirmed(Proved made) {
  using Kind = Assumption::Kind;
  const auto assumes = [&](auto&& holds) { return std::ranges::any_of(made.assumptions, holds); };
  // Declared and broadcast sizes: equal at the sizes of one run does not mean equal at all others.
  const bool believes = assumes([](const Assumption& assumption) {
    return assumption.kind == Kind::Declared ||
           (assumption.kind == Kind::Sizes && assumption.text.ends_with(kMeetByBroadcasting));
  });
  const bool rounds = assumes([](const Assumption& assumption) {
    return assumption.kind == Kind::Constant || assumption.text.ends_with(kLastPlace);
  });
  // An input for which nothing is NaN or infinite may not exist where a model holds one.
  const bool has_undefined = holds_undefined(aligned_.source) || holds_undefined(aligned_.target);
  if (!rounds && !believes && !has_undefined) return made;
  show("running both models");
  constexpr std::int64_t kFewElements = 1 << 12;
  constexpr double kProbeSeconds = 1;  // one probe is run in any case, others while there is time
  const CpuStopwatch watch;
  bool ran = false;
  for (const std::vector<Type>& types : probe_types(aligned_.inputs)) {
    std::int64_t elements = 0;
    for (const Type& type : types) elements += product(*type.shape).constant().value_or(0);
    if (ran && (!believes || elements > kFewElements)) break;
    std::optional<Refuted> refuted;
    const bool runs =
        for_each_range(joint().graph, types, interpreting(), [&](const InputRanges& below) {
          bool any = false;
          for (const Recipe& recipe : probes(options_.seed, below)) {
            if (is_stopped() || refuted || (any && watch.seconds() > kProbeSeconds)) return true;
            const std::vector<Tensor> inputs = make_inputs(types, recipe);
            const auto outputs = single_outputs(joint(), inputs);
            if (!outputs) return any;
            any = true;
            refuted = refuted_by(inputs, *outputs);
          }
          return any;
        });
    if (refuted) return *std::move(refuted);
    if (is_stopped()) return Unknown{"the time is over"};
    ran = ran || runs;
  }
  if (!ran && rounds)
    return Unknown{"constants are equal up to rounding, and the models cannot be run"};
  return made;
}

void ModelRuns::take_observations(const ModelRuns& other) {
  prints_ = {other.prints_[1], other.prints_[0]};
  sized_ = other.sized_;
  below_ = other.below_;
}

const JointGraph& ModelRuns::joint() {
  if (!joint_) joint_ = joint_graph(aligned_.source, aligned_.target);
  return *joint_;
}

std::optional<Refuted> ModelRuns::refutation(const std::vector<Tensor>& inputs,
                                             DistinguishOptions how) {
  const std::int64_t most_bytes = options_.memory_limit / 4;
  Locator locator = exact_scales_ ? Locator(exact_scales_->source(), exact_scales_->target(),
                                            exact_scales_->joint(), most_bytes)
                                  : Locator(aligned_.source, aligned_.target, joint(), most_bytes);
  how.observe = [&](ValueId id, const interp::Value& value) { locator.observe(id, value); };
  auto refuted = distinguishes(joint(), inputs, how);
  if (!refuted || !*refuted) return std::nullopt;
  const bool is_defined = std::isnan((*refuted)->source) == std::isnan((*refuted)->target);
  if (!is_defined && !holds_undefined(aligned_.source) && !holds_undefined(aligned_.target)) {
    if (!undefined_) {
      undefined_ = *std::move(refuted);
      undefined_divergence_ = locator.divergence();
    }
    return std::nullopt;
  }
  divergence_ = locator.divergence();
  return *std::move(refuted);
}

std::optional<std::array<std::vector<Datum>, 2>> ModelRuns::single_outputs(
    const JointGraph& joint, const std::vector<Tensor>& inputs,
    const std::function<void(ValueId, const interp::Value&)>& observe) const {
  std::vector<interp::Value> values;
  for (const Tensor& input : inputs) values.push_back({input});
  interp::Options run = interpreting();
  run.observe = observe;
  const auto results = interp::run_as<float>(joint.graph, values, run);
  if (!results) return std::nullopt;
  std::array<std::vector<Datum>, 2> outputs;
  for (std::size_t i = 0; i < results->size(); ++i)
    outputs[2 * i < results->size() ? 0 : 1].push_back((*results)[i].datum);
  return outputs;
}

bool ModelRuns::run_both(const JointGraph& prepared, const std::vector<Tensor>& inputs,
                         std::array<std::vector<Datum>, 2>& outputs) {
  // Values of the two graphs by value of the joint one.
  std::vector<std::vector<std::pair<std::size_t, std::uint32_t>>> of(prepared.graph.value_count());
  for (const std::size_t side : {0, 1}) {
    prints_[side].assign(prepared.values[side].size(), std::nullopt);
    for (std::uint32_t i = 0; i < prepared.values[side].size(); ++i)
      if (const ValueId at = prepared.values[side][i]; at.present())
        of[at.index].push_back({side, i});
  }
  const auto print = [&](ValueId id, const interp::Value& value) {
    if (!value.datum.is_tensor()) return;
    const Fingerprint made = fingerprint(value.datum.tensor());
    for (const auto& [side, i] : of[id.index]) prints_[side][i] = made;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) print(prepared.graph.inputs()[i], {inputs[i]});
  for (std::uint32_t i = 0; i < prepared.graph.value_count(); ++i)
    if (const Tensor* constant = prepared.graph.constant({i});
        constant != nullptr && constant->count() <= kMostPrinted)
      print({i}, {*constant});
  auto results = single_outputs(prepared, inputs, print);
  if (results) outputs = *std::move(results);
  return results.has_value();
}

std::optional<Refuted> ModelRuns::refuted_by(const std::vector<Tensor>& inputs,
                                             const std::array<std::vector<Datum>, 2>& single) {
  if (!(furthest_apart(single[0], single[1]).relative > kDiffers)) return std::nullopt;
  DistinguishOptions how = running();
  how.rounded = &single;
  return refutation(inputs, how);
}

std::optional<Refuted> ModelRuns::refuted_by_truth_values(const std::vector<Type>& types) {
  const InputRanges below(types.size(), 2);
  const bool has_integers = std::ranges::any_of(
      types, [](const Type& type) { return !is_float(type.dtype) && type.dtype != DType::String; });
  if (!has_integers || below == below_ || is_stopped()) return std::nullopt;
  const std::vector<Tensor> inputs = make_inputs(types, {.seed = options_.seed, .below = below});
  const auto outputs = single_outputs(joint(), inputs);
  return outputs ? refuted_by(inputs, *outputs) : std::nullopt;
}

std::optional<Refuted> ModelRuns::observe(const Graph& source, const Graph& target) {
  show("running both models");
  const JointGraph prepared = joint_graph(source, target);
  const bool open = concrete(aligned_.inputs, 3) != concrete(aligned_.inputs, 8);
  for (const std::int64_t size : {3, 8, 32, 64, 224}) {
    const auto types = concrete(aligned_.inputs, size);
    if (!types || (size != 3 && !open) || (open && !is_small(*types))) break;
    std::optional<Refuted> refuted;
    const bool ran =
        for_each_range(prepared.graph, *types, interpreting(), [&](const InputRanges& below) {
          if (is_stopped()) return true;
          const std::vector<Tensor> inputs =
              make_inputs(*types, {.seed = options_.seed, .below = below});
          std::array<std::vector<Datum>, 2> outputs;
          if (!run_both(prepared, inputs, outputs) || !mostly_finite(outputs[0])) return false;
          sized_ = types;
          below_ = below;
          refuted = refuted_by(inputs, outputs);
          return true;
        });
    if (ran) return refuted ? refuted : refuted_by_truth_values(*types);
  }
  for (auto& prints : prints_) prints.clear();
  return std::nullopt;
}

std::vector<Recipe> ModelRuns::recipes_tried() const {
  return recipes(options_.seed + 1, aligned_.inputs.size(), below_,
                 telling_numbers(aligned_.source, aligned_.target));
}

std::optional<Refuted> ModelRuns::undefined_difference() {
  constexpr double kSeconds = 5;
  if (!undefined_) return std::nullopt;
  std::vector<Type> types;
  for (const Tensor& input : undefined_->inputs)
    types.push_back(Type::tensor(input.dtype, {input.shape.begin(), input.shape.end()}));
  const auto is_number = [&](const Datum& output) {
    if (!output.is_tensor() || output.tensor().shape.size() != undefined_->position.size())
      return false;
    std::int64_t element = 0;
    for (std::size_t axis = 0; axis < undefined_->position.size(); ++axis) {
      if (undefined_->position[axis] >= output.tensor().shape[axis]) return false;
      element = element * output.tensor().shape[axis] + undefined_->position[axis];
    }
    return std::isfinite(number_at(output.tensor(), element));
  };
  const CpuStopwatch watch;
  std::vector<Recipe> list = recipes_tried();
  std::ranges::reverse(list);  // positive numbers first
  for (const Recipe& recipe : list) {
    if (is_stopped()) return std::nullopt;
    if (watch.seconds() > kSeconds) break;
    const auto outputs = single_outputs(joint(), make_inputs(types, recipe));
    if (outputs && std::ranges::all_of(*outputs, [&](const std::vector<Datum>& side) {
          return is_number(side[undefined_->output]);
        }))
      return std::nullopt;
  }
  divergence_ = undefined_divergence_;
  return undefined_;
}

std::optional<Refuted> ModelRuns::search(double seconds) {
  const CpuStopwatch watch;
  const auto is_over = [&] { return is_stopped() || watch.seconds() > seconds; };
  const auto tells_apart = [&](const std::vector<Type>& types,
                               const Recipe& recipe) -> std::optional<Refuted> {
    DistinguishOptions how = running();
    how.may_overflow = recipe.scale > 1;
    return refutation(make_inputs(types, recipe), how);
  };
  const std::optional<std::vector<Type>> types = sized_ ? sized_ : concrete(aligned_.inputs, 8);
  if (!types) return std::nullopt;
  const std::vector<Recipe> list = recipes_tried();
  for (const Recipe& recipe : list) {
    if (is_over()) return std::nullopt;
    show("searching for an input that tells them apart");
    if (auto refuted = tells_apart(*types, recipe)) return refuted;
  }
  for (const std::vector<Type>& other : probe_types(aligned_.inputs)) {
    if (is_over()) return std::nullopt;
    if (other == *types) continue;
    if (auto refuted = tells_apart(other, list.front())) return refuted;
  }
  return std::nullopt;
}

}  // namespace tessera::prove
