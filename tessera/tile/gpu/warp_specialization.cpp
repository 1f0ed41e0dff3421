#include "tessera/tile/gpu/warp_specialization.h"

#include <array>
#include <functional>

#include "tessera/tile/gpu/tensor_maps.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile::gpu {
namespace {

/// Operations, in order, that scalars and views are computed by; none where they depend on memory,
/// tiles or loops.
std::optional<std::vector<OpId>> known_from(const PlannedKernel& planned,
                                            const std::vector<ValueId>& values) {
  std::set<OpId> found;
  std::vector<ValueId> open = values;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    const Operation* op = planned.defining_op(id);
    if (op == nullptr) {
      const std::vector<ValueId>& params = planned.kernel.params();
      if (std::find(params.begin(), params.end(), id) == params.end()) return {};
      continue;
    }
    if (planned.type(id).is_tile() || !is_pure(planned.kernel, *op) || !op->regions.empty())
      return {};
    if (found.insert(*planned.definitions[id]).second)
      open.insert(open.end(), op->in.begin(), op->in.end());
  }
  std::vector<OpId> in_order;
  for (const OpId id : planned.kernel.body.ops)
    if (found.count(id) != 0) in_order.push_back(id);
  // Operations inside of a loop or branch are not among them.
  return in_order.size() == found.size() ? std::optional(in_order) : std::nullopt;
}

/// Whether specialization is profitable, where the number of iterations is known.
bool may_pay(const PlannedKernel& planned, const Operation& loop) {
  std::array<std::int64_t, 3> bounds = {};
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const Operation* made = planned.defining_op(loop.in[i]);
    if (made == nullptr || made->code != Code::Const) return true;
    bounds[i] = made->literal.integer;
  }
  const auto [from, to, step] = bounds;
  const std::int64_t rounds = step < 1 ? 0 : (to - from + step - 1) / step;
  std::int64_t sums = 0;
  for (const OpId id : loop.regions[0].ops)
    if (const Operation& op = planned.kernel.ops[id]; op.code == Code::Dot)
      sums = std::max(sums, planned.type(op.out[0]).count());
  return warp_specialization_pays({.k_steps = rounds, .accumulators = sums});
}

/// Programs that synchronize may wait for one that a persistent block would run later.
bool speaks(Code code) {
  return code == Code::Barrier || code == Code::Atomic || code == Code::Cas;
}

Decision<WarpSpecialization> around(const PlannedKernel& planned, OpId id,
                                    const WarpSpecializationOptions& options) {
  const Operation& loop = planned.kernel.ops[id];
  if (!options.is_requested && !may_pay(planned, loop))
    return DeclineReason{"not profitable for this tile size and number of k-steps"};
  const Decision<LoopPipeline> pipeline = pipeline_of(planned, loop, options.stages);
  if (!pipeline) return DeclineReason{pipeline.why_not()};
  // Accumulators are the only result of an iteration.
  if (pipeline->pending.empty()) return DeclineReason{"no matmul overlaps with the next iteration"};
  std::vector<ValueId> needs(loop.in.begin(), loop.in.begin() + 3);
  const std::function<void(ValueId)> follow = [&](ValueId value) {
    if (value == loop.regions[0].params[0]) return;
    if (!planned.is_defined_in(loop, value)) {
      needs.push_back(value);
      return;
    }
    for (const ValueId in : planned.defining_op(value)->in) follow(in);
  };
  for (const StagedOperand& staged : pipeline->operands)
    for (const ValueId in : planned.kernel.ops[staged.load].in) follow(in);
  auto needed = known_from(planned, needs);
  if (!needed) return DeclineReason{"its addresses depend on more than parameters and program ids"};
  WarpSpecialization specialization{
      .loop = id, .pipeline = *pipeline, .needed = *std::move(needed)};
  const auto maps = options.maps ? tensor_maps_of(planned, *pipeline)
                                 : DeclineReason{"the launcher does not support them"};
  if (maps) specialization.maps = *maps;
  specialization.no_maps_reason = maps.why_not();
  return specialization;
}

}  // namespace

Decision<WarpSpecialization> find_warp_specialization(const PlannedKernel& planned,
                                                      const WarpSpecializationOptions& options) {
  if (!planned.plan.any_wgmma()) return DeclineReason{"no matmul uses wgmma"};
  std::optional<WarpSpecialization> specialization;
  std::string why = "no loop";
  bool wrote = false;
  for (const OpId id : planned.kernel.body.ops) {
    const Operation& op = planned.kernel.ops[id];
    if (speaks(op.code) || any_op(planned.kernel, op, speaks))
      return DeclineReason{"programs may synchronize with each other"};
    if (op.code == Code::Vload && specialization && !wrote) {
      constexpr int kFew = 4;  // registers that the loop can spare
      auto numbers = known_from(planned, op.in);
      if (numbers && planned.home(op.out[0]).registers() <= kFew)
        specialization->early.push_back({.load = id, .numbers = *std::move(numbers)});
    }
    if (op.code == Code::For && !specialization) {
      const Decision<WarpSpecialization> found =
          wrote ? DeclineReason{"a store comes before the loop"} : around(planned, id, options);
      if (found) specialization = *found;
      why = found.why_not();
    }
    wrote = wrote || writes_memory(op.code) || any_op(planned.kernel, op, writes_memory);
  }
  if (!specialization) return DeclineReason{why};
  return *std::move(specialization);
}

}  // namespace tessera::tile::gpu
