#include "tessera/tile/gpu/epilogue.h"

#include <map>

namespace tessera::tile::gpu {
namespace {

void add_epilogues(const PlannedKernel& planned, const Region& region, std::set<OpId>& epilogue) {
  const Kernel& kernel = planned.kernel;
  struct Need {
    OpId store = 0;
    int uses = 0;
    bool several = false;  // other stores, or uses outside of the epilogue
  };
  std::map<ValueId, Need> needs;
  const auto need = [&](ValueId id, OpId store) {
    Need& found = needs.try_emplace(id, Need{.store = store}).first->second;
    ++found.uses;
    found.several = found.several || found.store != store;
  };
  for (std::size_t i = region.ops.size(); i-- > 0;) {
    const OpId id = region.ops[i];
    const Operation& op = kernel.ops[id];
    for (const Region& inner : op.regions) add_epilogues(planned, inner, epilogue);
    if (!op.regions.empty()) needs.clear();  // registers that are live through a loop are expensive
    if (op.code == Code::Vstore) {
      need(op.in.back(), id);
      continue;
    }
    const bool by_elements = op.code == Code::Map || op.code == Code::Cast;
    if (!by_elements || !planned.type(op.out[0]).is_tile() || !planned.plan.home(op.out[0]))
      continue;
    const auto found = needs.find(op.out[0]);
    if (found == needs.end() || found->second.several ||
        found->second.uses != planned.uses[op.out[0]] ||
        planned.home(op.out[0]) != planned.home(kernel.ops[found->second.store].in.back()))
      continue;
    epilogue.insert(id);
    for (const ValueId in : op.in) need(in, found->second.store);
  }
}

}  // namespace

std::set<OpId> find_epilogues(const PlannedKernel& planned) {
  std::set<OpId> epilogue;
  add_epilogues(planned, planned.kernel.body, epilogue);
  return epilogue;
}

}  // namespace tessera::tile::gpu
