#include "tessera/tile/gpu/programs.h"

#include <algorithm>
#include <cmath>

#include "tessera/tile/gpu/panels.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile::gpu {
namespace {

bool all_known(const ProgramDependences& dependences, std::span<const ValueId> ids) {
  return std::all_of(ids.begin(), ids.end(),
                     [&](ValueId id) { return dependences.count(id) != 0; });
}

bool all_same(const ProgramDependences& dependences, const std::vector<ValueId>& ids) {
  return std::all_of(ids.begin(), ids.end(),
                     [&](ValueId id) { return dependences.at(id) == ProgramDependence::Uniform; });
}

// No store of the kernel goes to this parameter. If two arguments aliased, one program would write
// what the others read, which is a race.
bool is_constant(const PlannedKernel& planned, const ProgramDependences& dependences, OpId load) {
  const Operation& op = planned.kernel.ops[load];
  if (op.code != Code::Vload || !all_same(dependences, op.in)) return false;
  const std::optional<ValueId> root = root_of(planned, op.in[0]);
  bool before_writes = true, read = false;
  for (const OpId id : planned.kernel.body.ops) {
    read = read || id == load;
    const Operation& other = planned.kernel.ops[id];
    if (!writes_memory(other.code)) continue;
    before_writes = before_writes && read;
    const auto written = root_of(planned, other.in[0]);
    if (other.code != Code::Vstore || !written || written == root) return false;
  }
  return root.has_value() && before_writes;
}

}  // namespace

std::optional<ValueId> root_of(const PlannedKernel& planned, ValueId view) {
  while (const Operation* op = planned.defining_op(view)) {
    if (op->code != Code::View && op->code != Code::Base && op->code != Code::Hint) return {};
    view = op->in[0];
  }
  return view;
}

ProgramDependences program_dependences(const Kernel& kernel) {
  ProgramDependences dependences;
  for (const ValueId param : kernel.params()) dependences[param] = ProgramDependence::Uniform;
  for (const OpId id : kernel.body.ops) {
    const Operation& op = kernel.ops[id];
    ProgramDependence by = op.code == Code::Pid && op.ints[0] == 0 ? ProgramDependence::Varying
                                                                   : ProgramDependence::Uniform;
    for (const ValueId in : op.in)
      if (const auto found = dependences.find(in); found != dependences.end())
        by = std::max(by, found->second);
    const bool number = is_pure(kernel, op) && op.regions.empty() && op.out.size() == 1 &&
                        !kernel.type(op.out[0]).is_tile();
    if (number && all_known(dependences, op.in) &&
        !(kernel.type(op.out[0]).is_view() && by == ProgramDependence::Varying))
      dependences[op.out[0]] = by;
  }
  return dependences;
}

std::vector<PrefetchedLoad> prefetched_loads(const PlannedKernel& planned,
                                             const ProgramDependences& dependences) {
  std::vector<PrefetchedLoad> loads;
  bool before_writes = true;
  for (const OpId id : planned.kernel.body.ops) {
    const Operation& op = planned.kernel.ops[id];
    before_writes = before_writes && !writes_memory(op.code);
    if (op.code != Code::Vload || !before_writes || !all_known(dependences, op.in)) continue;
    const Type &view = planned.type(op.in[0]), &tile = planned.type(op.out[0]);
    const Layout layout = planned.plan.access(op);
    const int width = byte_width(tile.dtype);
    const bool whole_chunks = run_of(view, layout, tile.shape) * width == kChunk;
    // Asynchronous copies fill with zeros out of bounds; a padding of -0 differs.
    const bool zero = op.literal == Literal{} && !std::signbit(op.literal.number);
    if (!whole_chunks || !zero) continue;
    loads.push_back({.load = id,
                     .bytes = std::int64_t{layout.registers()} * width * planned.plan.threads(),
                     .fixed = all_same(dependences, op.in)});
  }
  return loads;
}

std::vector<std::pair<OpId, KnownAccess>> known_accesses(const PlannedKernel& planned,
                                                         const ProgramDependences& dependences) {
  std::vector<std::pair<OpId, KnownAccess>> accesses;
  for (const OpId id : planned.kernel.body.ops) {
    const Operation& op = planned.kernel.ops[id];
    if (!is_access(op)) continue;
    const Type& view = planned.type(op.in[0]);
    if (!all_known(dependences, std::span(op.in).first(1 + static_cast<std::size_t>(view.rank()))))
      continue;
    const Extents& shape = planned.type(op.code == Code::Vload ? op.out[0] : op.in.back()).shape;
    KnownAccess known{.run = run_of(view, planned.plan.access(op), shape),
                      .constant = is_constant(planned, dependences, id)};
    // The end of a row may be anywhere; the rows of merged programs all exist but for the last
    // ones.
    const auto along = static_cast<std::size_t>(contiguous_axis(view));
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      known.inside.push_back(shape[axis] == 1 || axis != along);
    accesses.emplace_back(id, std::move(known));
  }
  return accesses;
}

}  // namespace tessera::tile::gpu
