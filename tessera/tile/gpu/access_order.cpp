#include "tessera/tile/gpu/access_order.h"

namespace tessera::tile::gpu {

AccessOrder::Access AccessOrder::of(const PlannedKernel& planned, OpId id) {
  const Operation& op = planned.kernel.ops[id];
  const Type& view = planned.type(op.in[0]);
  return {.op = id,
          .writes = op.code == Code::Vstore,
          .is_known = view.strides == Extents{1},
          .view = op.in[0],
          .at = {op.in.begin() + 1, op.in.begin() + 1 + view.rank()},
          .layout = planned.plan.access(op)};
}

AccessOrder::Need AccessOrder::before(const Access& access, int barriers) {
  if (barriers != ordered_at_) accesses_.clear();
  Need need;
  for (const Access& earlier : accesses_) {
    if (!access.writes && !earlier.writes) continue;
    // Threads that hold the same elements in both accesses, each alone, do not conflict.
    if (!access.is_known || !earlier.is_known || access.at != earlier.at ||
        access.layout != earlier.layout || access.layout->replicated())
      return {.always = true};
    // Identical views do not conflict; arguments may overlap in any other way, which is checked at
    // launch.
    if (access.view != earlier.view) need.overlapping.emplace_back(access.op, earlier.op);
  }
  return need;
}

void AccessOrder::record(const Access& access, int barriers) {
  if (barriers != ordered_at_) accesses_.clear();
  ordered_at_ = barriers;
  has_written_ = has_written_ || access.writes;
  accesses_.push_back(access);
}

void AccessOrder::complete(const Access& access, int barriers) {
  if (barriers != ordered_at_) accesses_ = {access};
  ordered_at_ = barriers;
}

void AccessOrder::join(bool written, int barriers) {
  accesses_ = {{.writes = written || has_written_}};
  ordered_at_ = barriers;
}

}  // namespace tessera::tile::gpu
