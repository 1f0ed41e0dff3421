#include <algorithm>

#include "tessera/tile/gpu/block_lowering.h"

// Matmuls: where their operands are, and when their accumulators are waited for.

namespace tessera::tile::gpu {

void BlockLowering::dot(OpId id) {
  const Operation& op = operation(id);
  if (plan_.instruction_of(op) == MatmulInstruction::Scalars) return dot_scalars(id);
  const Layout layout = home(op.out[0]);
  TESSERA_CHECK(layout == plan_.accumulator_layout(op), "a product has its own layout");
  Matmul made{.op = id, .layout = layout};
  require(op.in[2], layout);
  if (has_fragments(op)) made.a.place = DotOperand::Place::Registers;
  // Stage buffers are not overwritten until the iteration ends: the matmul may overlap that long.
  const bool in_stages =
      in_buffers_.contains(op.in[1]) &&
      (made.a.place == DotOperand::Place::Registers || in_buffers_.contains(op.in[0]));
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

bool BlockLowering::has_fragments(const Operation& dot) {
  const std::optional<Layout> layout = plan_.fragments(dot);
  if (!layout) return false;
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
    if (operand.place == DotOperand::Place::Registers || in_buffers_.contains(id)) continue;
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

// The first operand of a matmul that is the same in all iterations is converted before the loop.
void BlockLowering::require_fragments(const Operation& loop) {
  for (const OpId id : loop.regions[0].ops) {
    const Operation& op = operation(id);
    if (op.code != Code::Dot || plan_.instruction_of(op) == MatmulInstruction::Scalars ||
        planned_.varies_in(loop, op.in[0]))
      continue;
    if (const auto layout = plan_.fragments(op)) require(op.in[0], *layout);
  }
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
