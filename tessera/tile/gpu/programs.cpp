#include "tessera/tile/gpu/programs.h"

#include <algorithm>
#include <cmath>

#include "tessera/tile/gpu/panels.h"
#include "tessera/tile/passes/rewrite.h"

namespace tessera::tile::gpu {
namespace {

bool all_known(const Courses& courses, std::span<const ValueId> ids) {
  return std::all_of(ids.begin(), ids.end(), [&](ValueId id) { return courses.count(id) != 0; });
}

bool all_same(const Courses& courses, const std::vector<ValueId>& ids) {
  return std::all_of(ids.begin(), ids.end(),
                     [&](ValueId id) { return courses.at(id) == ByProgram::Same; });
}

// Nothing in the kernel writes what an argument names, as far as it says. Where two arguments name
// the same memory, one program would write what the others read, in no order.
bool is_constant(const Planned& planned, const Courses& courses, OpId load) {
  const Operation& op = planned.kernel.ops[load];
  if (op.code != Code::Vload || !all_same(courses, op.in)) return false;
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

std::optional<ValueId> root_of(const Planned& planned, ValueId view) {
  while (const Operation* op = planned.maker(view)) {
    if (op->code != Code::View && op->code != Code::Base && op->code != Code::Hint) return {};
    view = op->in[0];
  }
  return view;
}

Courses courses_of(const Kernel& kernel) {
  Courses courses;
  for (const ValueId param : kernel.params()) courses[param] = ByProgram::Same;
  for (const OpId id : kernel.body.ops) {
    const Operation& op = kernel.ops[id];
    ByProgram by = op.code == Code::Pid && op.ints[0] == 0 ? ByProgram::Differs : ByProgram::Same;
    for (const ValueId in : op.in)
      if (const auto found = courses.find(in); found != courses.end())
        by = std::max(by, found->second);
    const bool number = is_pure(kernel, op) && op.regions.empty() && op.out.size() == 1 &&
                        !kernel.type(op.out[0]).is_tile();
    if (number && all_known(courses, op.in) &&
        !(kernel.type(op.out[0]).is_view() && by == ByProgram::Differs))
      courses[op.out[0]] = by;
  }
  return courses;
}

std::vector<Stream> streams_of(const Planned& planned, const Courses& courses) {
  std::vector<Stream> streams;
  bool before_writes = true;
  for (const OpId id : planned.kernel.body.ops) {
    const Operation& op = planned.kernel.ops[id];
    before_writes = before_writes && !writes_memory(op.code);
    if (op.code != Code::Vload || !before_writes || !all_known(courses, op.in)) continue;
    const Type &view = planned.type(op.in[0]), &tile = planned.type(op.out[0]);
    const Layout layout = planned.plan.access(view, tile.shape);
    const int width = byte_width(tile.dtype);
    const bool whole_chunks = run_of(view, layout, tile.shape) * width == kChunk;
    // Copies leave zeros outside: a -0 is another number.
    const bool zero = op.literal == Literal{} && !std::signbit(op.literal.number);
    if (!whole_chunks || !zero) continue;
    streams.push_back({.load = id,
                       .bytes = std::int64_t{layout.registers()} * width * planned.plan.threads(),
                       .fixed = all_same(courses, op.in)});
  }
  return streams;
}

std::vector<std::pair<OpId, Sure>> sure_accesses(const Planned& planned, const Courses& courses) {
  std::vector<std::pair<OpId, Sure>> accesses;
  for (const OpId id : planned.kernel.body.ops) {
    const Operation& op = planned.kernel.ops[id];
    if (!is_access(op)) continue;
    const Type& view = planned.type(op.in[0]);
    if (!all_known(courses, std::span(op.in).first(1 + static_cast<std::size_t>(view.rank()))))
      continue;
    const Extents& shape = planned.type(op.code == Code::Vload ? op.out[0] : op.in.back()).shape;
    Sure sure{.run = run_of(view, planned.plan.access(view, shape), shape),
              .constant = is_constant(planned, courses, id)};
    for (const std::int64_t extent : shape) sure.inside.push_back(extent == 1);
    accesses.emplace_back(id, std::move(sure));
  }
  return accesses;
}

}  // namespace tessera::tile::gpu
