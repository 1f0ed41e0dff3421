#include <algorithm>
#include <set>
#include <vector>

#include "tessera/tile/gpu/block_lowering.h"
#include "tessera/tile/passes/rewrite.h"

// Matmuls: where their operands are, and when their accumulators are waited for.

namespace tessera::tile::gpu {
namespace {

/// Whether a value is defined in the body of a loop, nested regions included, or carried by it.
bool is_made_in(const PlannedKernel& planned, const Operation& loop, ValueId id) {
  bool found = false;
  const auto visit = [&](const Region& region, const auto& self) -> void {
    found = found || std::ranges::count(region.params, id) != 0;
    for (const OpId op : region.ops) {
      found = found || planned.definitions[id] == op;
      for (const Region& inner : planned.kernel.ops[op].regions) self(inner, self);
    }
  };
  for (const Region& region : loop.regions) visit(region, visit);
  return found;
}

/// Whether a value is computed in a loop from what the iterations hand on: else it may be computed
/// before the loop.
bool changes_in(const PlannedKernel& planned, const Operation& loop, ValueId id) {
  std::set<ValueId> seen;
  std::vector<ValueId> open = {id};
  while (!open.empty()) {
    const ValueId next = open.back();
    open.pop_back();
    if (!seen.insert(next).second) continue;
    for (const Region& region : loop.regions)
      if (std::ranges::count(region.params, next) != 0) return true;
    const Operation* by = planned.defining_op(next);
    if (by == nullptr || !is_made_in(planned, loop, next)) continue;
    open.insert(open.end(), by->in.begin(), by->in.end());
    for (const Region& region : by->regions)
      for_each_op(planned.kernel, region, [&](OpId op) {
        const std::vector<ValueId>& in = planned.kernel.ops[op].in;
        open.insert(open.end(), in.begin(), in.end());
      });
  }
  return false;
}

/// Whether one operation alone reads the registers of a value, by whatever name.
bool is_read_once(const PlannedKernel& planned, ValueId id) {
  if (planned.uses[id] != 1) return false;
  const Operation* by = planned.defining_op(id);
  if (by == nullptr) return true;
  switch (by->code) {
    case Code::Broadcast:
    case Code::Hint:
    case Code::Permute:
    case Code::Reshape: return is_read_once(planned, by->in[0]);
    case Code::If: {
      const auto at = std::ranges::find(by->out, id) - by->out.begin();
      return std::ranges::all_of(by->regions, [&](const Region& region) {
        return is_read_once(planned, yields(planned.kernel, region)[static_cast<std::size_t>(at)]);
      });
    }
    default: return true;
  }
}

}  // namespace

void BlockLowering::dot(OpId id) {
  const Operation& op = operation(id);
  if (plan_.instruction_of(op) == MatmulInstruction::Scalars) return dot_scalars(id);
  const Layout layout = home(op.out[0]);
  TESSERA_CHECK(layout == plan_.accumulator_layout(op), "a product has its own layout");
  Matmul made{.op = id, .layout = layout};
  require(op.in[2], layout);
  if (has_fragments(op)) made.a.place = DotOperand::Place::Registers;
  // Stage buffers are not overwritten until the iteration ends: the matmul may overlap that long.
  const bool in_stages = in_buffers_.contains(op.in[1]) &&
                         (made.a.place == DotOperand::Place::Registers ||
                          in_buffers_.contains(op.in[0]) || held_.contains(op.in[0]));
  place_operands(made);
  if (plan_.uses_wgmma(op)) {
    ++groups_;
    shared_.use_scratch();
    if (in_stages && type(op.out[0]).dtype == DType::F32) {
      made.completion = next_iteration_.contains(id) ? Matmul::Completion::NextIteration
                                                     : Matmul::Completion::Awaited;
      if (made.completion == Matmul::Completion::Awaited)
        pending_matmuls_.push_back({.id = op.out[0], .layout = layout, .group = groups_});
    }
  }
  const bool overlaps = made.completion == Matmul::Completion::NextIteration;
  const bool is_complete = made.completion == Matmul::Completion::Now;
  if (takes_turns() && !has_turn_) {
    add(AwaitMatmulTurn{});
    has_turn_ = true;
  }
  add(std::move(made));
  define(op.out[0], layout);
  if (is_complete && mapping_.tile_pipelines) {
    end_turn();
    release_tiles_of({{op.out[0], layout}});
  }
  if (!overlaps || !prefetching_loop_) return;
  barrier();  // matmuls of the previous iteration are complete, in all threads
  prefetch_next(*prefetching_loop_);
}

void BlockLowering::dot_scalars(OpId id) {
  const Operation& op = operation(id);
  const Layout layout = home(op.out[0]);
  Matmul made{.op = id, .layout = layout};
  require(op.in[2], layout);
  for (const int side : {0, 1}) {
    const ValueId in = op.in[static_cast<std::size_t>(side)];
    require_at_home(in);
    Extents extents;
    for (int axis = 0; axis < 2; ++axis)
      extents.push_back(std::max(home(in).extent(axis), axis == side ? layout.extent(axis) : 1));
    made.scalars.push_back(SharedTile::of(extents, dtype(in)));
  }
  place_in_scratch(made.scalars);
  exchanged();
  add(std::move(made));
  define(op.out[0], layout);
}

// A warpgroup's matmul reads registers while threads go on. ptxas (12.3 to 13.0) gives those of a
// factor that is read again later, as in the next iteration, to other values nevertheless.
bool BlockLowering::ends_in_registers(const Operation& dot) const {
  return is_read_once(planned_, dot.in[0]) &&
         (loops_.empty() || changes_in(planned_, operation(loops_.back()), dot.in[0]));
}

bool BlockLowering::has_fragments(const Operation& dot) {
  const std::optional<Layout> layout = plan_.fragments(dot);
  if (!layout || (plan_.uses_wgmma(dot) && !ends_in_registers(dot))) return false;
  wait_for(dot.in[0]);
  return has(dot.in[0], *layout);
}

void BlockLowering::place_operands(Matmul& matmul) {
  const Operation& op = operation(matmul.op);
  const MatmulInstruction instruction = plan_.instruction_of(op);
  std::int64_t bytes = 0;
  bool is_cleared = false;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    DotOperand& operand = side == 0 ? matmul.a : matmul.b;
    const ValueId id = op.in[side];
    if (operand.place == DotOperand::Place::Registers || in_buffers_.contains(id) ||
        (side == 0 && held_.contains(id)))
      continue;
    operand.place = DotOperand::Place::ToBuffer;
    DotBuffer& buffer = operand.buffer.emplace();
    const int k_axis = side == 0 ? 1 : 0;
    const auto k = static_cast<std::size_t>(k_axis);
    const Extents& shape = type(id).shape;
    const Layout layout = home(id);
    Panels& panels = buffer.panels;
    panels.width = byte_width(dtype(id));
    // 8-bit operands are supported along rows only.
    panels.column_axis = instruction == MatmulInstruction::Byte ? k_axis
                         : layout.run(0) > layout.run(1)        ? 0
                                                                : 1;
    const std::int64_t along_k = held_extent(shape[k], k_step(instruction));
    const std::int64_t across =
        std::max(held_extent(shape[1 - k], side == 0 ? 16 : 8), layout.extent(1 - k_axis));
    panels.columns = panels.column_axis == k_axis ? along_k : across;
    panels.rows = panels.column_axis == k_axis ? across : along_k;
    // Padding beyond the end of k must be 0; padding along the other axis is not used.
    buffer.is_cleared = shape[k] != along_k || layout.extent(k_axis) != shape[k];
    is_cleared = is_cleared || buffer.is_cleared;
    require(id, layout);
    buffer.offset = bytes;
    bytes += shared_room(panels.bytes());
  }
  if (bytes == 0) return;
  const SharedStack::Scratch scratch = shared_.scratch(bytes);
  if (scratch.needs_barrier) add(Barrier{});
  for (DotOperand* operand : {&matmul.a, &matmul.b})
    if (operand->buffer) operand->buffer->offset += scratch.offset;
  if (is_cleared) shared_.barrier();
  exchanged();
}

bool BlockLowering::names_buffer(OpId id) {
  const Operation& op = operation(id);
  if (op.code != Code::Permute && op.code != Code::Reshape) return false;
  if (!in_buffers_.contains(op.in[0])) return false;
  in_buffers_.insert(op.out[0]);
  add(RenameBuffer{.op = id});
  return true;
}

// The first operand of a matmul of warps that is the same in all iterations is converted before the
// loop.
void BlockLowering::require_fragments(const Operation& loop) {
  for (const OpId id : loop.regions[0].ops) {
    const Operation& op = operation(id);
    if (op.code != Code::Dot || plan_.instruction_of(op) == MatmulInstruction::Scalars ||
        plan_.uses_wgmma(op) || planned_.varies_in(loop, op.in[0]))
      continue;
    if (const auto layout = plan_.fragments(op)) require(op.in[0], *layout);
  }
}

// That of a warpgroup's matmul is stored to shared memory before the loop (ends_in_registers).
std::vector<HoldOperand> BlockLowering::room_for_operands(const Operation& loop) {
  std::vector<HoldOperand> made;
  const auto add_room = [&](OpId id) {
    const Operation& dot = operation(id);
    if (dot.code != Code::Dot || !plan_.uses_wgmma(dot) || !plan_.fragments(dot)) return;
    const ValueId operand = dot.in[0];
    if (is_made_in(planned_, loop, operand) || in_buffers_.contains(operand) ||
        !held_.insert(operand).second)
      return;
    require_at_home(operand);
    const Layout layout = home(operand);
    const Extents& shape = type(operand).shape;
    DotBuffer buffer;
    buffer.panels = {.column_axis = 1,
                     .rows = std::max(held_extent(shape[0]), layout.extent(0)),
                     .columns = std::max(held_extent(shape[1], k_step(plan_.instruction_of(dot))),
                                         layout.extent(1)),
                     .width = byte_width(dtype(operand))};
    const std::int64_t bytes = shared_room(buffer.panels.bytes());
    if (shared_.scratch(bytes).needs_barrier) add(Barrier{});
    buffer.offset = shared_.reserve(bytes);
    scopes_.back().held.push_back(operand);
    scopes_.back().held_bytes += bytes;
    made.push_back({.op = id, .layout = layout, .buffer = buffer});
  };
  for_each_op(kernel_, loop.regions.back(), add_room);
  return made;
}

// Groups of matmuls complete in order, so waiting for one is waiting for those before it.
void BlockLowering::wait_for(ValueId id) {
  const auto wanted = std::find_if(pending_matmuls_.begin(), pending_matmuls_.end(),
                                   [&](const PendingMatmul& pending) { return pending.id == id; });
  if (wanted == pending_matmuls_.end()) return;
  WaitMatmul wait{.pending = groups_ - wanted->group};
  for (auto pending = pending_matmuls_.begin(); pending != wanted + 1; ++pending)
    wait.matmuls.push_back({pending->id, pending->layout});
  pending_matmuls_.erase(pending_matmuls_.begin(), wanted + 1);
  end_turn();
  const std::vector<Fragment> complete = wait.matmuls;
  add(std::move(wait));
  if (mapping_.tile_pipelines) release_tiles_of(complete);
}

void BlockLowering::wait_for_all() {
  if (!pending_matmuls_.empty()) wait_for(pending_matmuls_.back().id);
}

}  // namespace tessera::tile::gpu
