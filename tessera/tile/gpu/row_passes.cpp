#include "tessera/tile/gpu/row_passes.h"

#include <algorithm>

namespace tessera::tile::gpu {

std::vector<RowPass> row_passes(const Kernel& kernel, const CutRows& cut) {
  std::map<ValueId, std::size_t> depths;    // number of reductions that a value depends on
  std::set<ValueId> moving = {cut.column};  // values that vary between parts
  std::vector<RowPass> passes(1);
  std::optional<OpId> store;
  std::vector<OpId> after;
  for (const OpId id : kernel.body.ops) {
    const Operation& op = kernel.ops[id];
    if (!op.out.empty() && op.out[0] == cut.column) continue;
    std::size_t depth = 0;
    bool moves = !op.out.empty() && cut.axes.contains(op.out[0]);
    for (const ValueId in : op.in) {
      if (const auto found = depths.find(in); found != depths.end())
        depth = std::max(depth, found->second);
      moves = moves || moving.contains(in);
    }
    if (passes.size() < depth + 1) passes.resize(depth + 1);
    if (op.code == Code::Reduce && moves) {
      passes[depth].folds.push_back(id);
      if (passes.size() < depth + 2) passes.resize(depth + 2);
      depths[op.out[0]] = depth + 1;
      continue;
    }
    for (const ValueId out : op.out) depths[out] = depth;
    if (op.code == Code::Vstore) {
      if (moves) {
        store = id;
      } else {
        after.push_back(id);
      }
    } else if (moves) {
      moving.insert(op.out.begin(), op.out.end());
    } else {
      passes[depth].before.push_back(id);
    }
  }
  // There are no loads after the first store.
  passes.back().store = store;
  passes.back().after = std::move(after);
  for (RowPass& pass : passes) {
    std::set<ValueId> needed;
    const auto need = [&](OpId id) {
      const Operation& op = kernel.ops[id];
      needed.insert(op.in.begin(), op.in.end());
      pass.inside.push_back(id);
    };
    for (auto at = kernel.body.ops.rbegin(); at != kernel.body.ops.rend(); ++at) {
      const Operation& op = kernel.ops[*at];
      const bool is_root = *at == pass.store ||
                           std::find(pass.folds.begin(), pass.folds.end(), *at) != pass.folds.end();
      const bool is_needed = !op.out.empty() && op.out[0] != cut.column &&
                             moving.contains(op.out[0]) && needed.contains(op.out[0]);
      if (is_root || is_needed) need(*at);
    }
    std::reverse(pass.inside.begin(), pass.inside.end());
  }
  return passes;
}

std::optional<int> cut_axis(const CutRows& cut, const Operation& op) {
  const auto found = cut.axes.find(op.code == Code::Vstore ? op.in.back() : op.out[0]);
  return found == cut.axes.end() ? std::nullopt : std::optional(found->second);
}

bool is_fixed(const ProgramDependences& dependences, const Operation& op) {
  return op.code == Code::Vload && std::all_of(op.in.begin(), op.in.end(), [&](ValueId in) {
           const auto found = dependences.find(in);
           return found != dependences.end() && found->second == ProgramDependence::Uniform;
         });
}

std::map<OpId, KnownAccess> known_accesses_of_parts(const PlannedKernel& planned,
                                                    const ProgramDependences& dependences,
                                                    const RowPass& pass, const PartAccesses& of) {
  std::map<OpId, KnownAccess> known;
  for (const OpId id : pass.inside) {
    const Operation& op = planned.kernel.ops[id];
    if (op.code != Code::Vload && op.code != Code::Vstore) continue;
    const bool aligned = of.alignment == RowAlignment::Aligned || !is_fixed(dependences, op);
    const Type& view = planned.type(op.in[0]);
    const Extents& shape = planned.type(op.code == Code::Vload ? op.out[0] : op.in.back()).shape;
    known[id] = {.run = aligned ? run_of(view, planned.plan.access(op), shape) : 1,
                 .constant = of.constants.contains(id),
                 .unaligned = !aligned,
                 .edge = !of.is_middle,
                 .inside = std::vector<bool>(shape.size(), true)};
  }
  return known;
}

}  // namespace tessera::tile::gpu
