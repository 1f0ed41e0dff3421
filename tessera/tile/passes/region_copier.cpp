#include "tessera/tile/passes/region_copier.h"

namespace tessera::tile {

std::vector<OpId> RegionCopier::copy(const std::vector<OpId>& ops) {
  std::vector<OpId> outer = std::exchange(copies_, {});
  for (const OpId id : ops) {
    Operation op = kernel_.ops[id];
    for (ValueId& in : op.in) in = of(in);
    if (change_ && !op.out.empty()) change_(*this, op.out[0], op);
    for (ValueId& out : op.out) out = now_[out] = fresh(kernel_.values[out]);
    for (Region& region : op.regions) {
      for (ValueId& param : region.params) param = now_[param] = fresh(kernel_.values[param]);
      region.ops = copy(region.ops);
    }
    kernel_.ops.push_back(std::move(op));
    copies_.push_back(static_cast<OpId>(kernel_.ops.size() - 1));
  }
  return std::exchange(copies_, std::move(outer));
}

ValueId RegionCopier::of(ValueId old) const {
  const auto found = now_.find(old);
  return found == now_.end() ? old : found->second;
}

ValueId RegionCopier::emit(Operation op, const Type& type) {
  op.out = {fresh({type, {}})};
  kernel_.ops.push_back(std::move(op));
  copies_.push_back(static_cast<OpId>(kernel_.ops.size() - 1));
  return kernel_.ops.back().out[0];
}

ValueId RegionCopier::fresh(Value value) {
  kernel_.values.push_back(std::move(value));
  return static_cast<ValueId>(kernel_.values.size() - 1);
}

}  // namespace tessera::tile
