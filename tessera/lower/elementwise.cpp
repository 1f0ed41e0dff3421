#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "tessera/expr/transform.h"
#include "tessera/expr/walk.h"
#include "tessera/lower/direct_conv.h"
#include "tessera/lower/group.h"

namespace tessera::lower {

using tile::Schedule;
using tile::Stage;

namespace {

/// The axis of an operand that the last loop of the output runs along in all of its reads, if there
/// is one such and it is not the last.
std::optional<int> axis_of_vectors(const Stage& stage, const tile::Nest& nest,
                                   const std::string& operand) {
  std::string last;
  for (const tile::Loop& loop : nest.loops)
    if (!loop.reduces && loop.extent > 1) last = loop.name;
  std::optional<int> found;
  bool differs = false;
  for_each_read(stage.output.value, [&](const node::Read& read) {
    if (read.operand != operand) return;
    for (std::size_t i = 0; i < read.at.size(); ++i) {
      const auto loops = tile::loops_of(nest, read.at[i]);
      if (std::ranges::find(loops, last) == loops.end()) continue;
      differs = differs || (found && *found != static_cast<int>(i));
      found = static_cast<int>(i);
    }
  });
  return differs ? std::nullopt : found;
}

/// Has a weight that is read across memory laid out anew, once, so that vectors of it are
/// contiguous: [c, r, s] as [r, s, c].
Expected<Done> pack_weights(Stage& stage, const Group& group, std::vector<Packing>& packings) {
  TESSERA_TRY(const Schedule plain, Schedule::of({stage}));
  for (const Operand& operand : std::vector<Operand>(stage.operands)) {
    if (!group.weights.contains(operand.name)) continue;
    const auto axis = axis_of_vectors(stage, plain.nest(stage.name()), operand.name);
    const auto rank = static_cast<int>(operand.shape.size());
    if (!axis || *axis + 1 == rank) continue;
    std::vector<int> order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    order.erase(order.begin() + *axis);
    order.push_back(*axis);

    const std::string packed = fmt::format("{}.{}", operand.name, fmt::join(order, "_"));
    Operand weight = operand;
    for (Dim& dim : weight.shape) dim = resolved(dim, stage.sizes);
    std::vector<Axis> axes;
    for (const Dim& dim : weight.shape) axes.push_back({fmt::format("i{}", axes.size()), dim});
    Output output{packed, weight.dtype, {}, weight(indices(axes))};
    for (const int i : order) output.axes.push_back({{axes[static_cast<std::size_t>(i)]}});
    if (std::ranges::none_of(
            packings, [&](const Packing& p) { return p.definition.outputs[0].name == packed; }))
      packings.push_back({weight.name, {.inputs = {weight}, .outputs = {output}}});

    Transform transform;
    transform.read = [&](const node::Read& read) -> std::optional<Scalar> {
      if (read.operand != operand.name) return std::nullopt;
      return Scalar(Node(node::Read{packed, read.sort, read.at, read.otherwise}));
    };
    stage.output.value = transform(stage.output.value);
    for (Operand& o : stage.operands)
      if (o.name == operand.name) o.name = packed;
    TESSERA_TRY(tile::Stages stages, reordered({stage}, packed, order));
    stage = std::move(stages.front());
  }
  return Done{};
}

}  // namespace

Expected<Attempt> lower_elementwise(const Group& group, const machine::Machine& machine,
                                    const GroupOptions&) {
  GroupCode code;
  for (const Stage& original : group.stages) {
    Stage stage = original;
    TESSERA_TRY_DONE(pack_weights(stage, group, code.packings));
    TESSERA_TRY(std::optional<Schedule> schedule, direct_conv_schedule(stage, machine));
    if (!schedule) {
      TESSERA_TRY(schedule, default_schedule({stage}, machine));
      code.strategy = "elementwise";
    } else {
      code.strategy = "direct conv";
    }
    TESSERA_TRY(std::vector<Lowered> kernels, lower(*schedule));
    std::ranges::move(kernels, std::back_inserter(code.kernels));
    if (std::ranges::find(group.results, stage.name()) == group.results.end()) {
      TESSERA_TRY(const std::vector<Operand> tensors, tensors_of({stage}));
      code.temporaries.push_back(*std::ranges::find(tensors, stage.name(), &Operand::name));
    }
  }
  return Attempt(std::move(code));
}

}  // namespace tessera::lower
