#include <algorithm>

#include "tessera/tile/gpu/block_lowering.h"

// Warp specialization with a pipeline for each view: producer warps copy the operands of all
// matmuls in the order of the program, consumer warpgroups run the program.

namespace tessera::tile::gpu {

namespace {

/// Whether all that a program does in memory, besides copies that are complete when their tiles are
/// read, is one store.
bool stores_once(const Kernel& kernel, const TilePipelines& pipelines) {
  int accesses = 0;
  bool is_at_the_end = false;
  for_each_op(kernel, kernel.body, [&](OpId id) {
    const Operation& op = kernel.ops[id];
    if (op.code == Code::Dot) is_at_the_end = false;
    if (pipelines.of(id) != nullptr || !(reads_memory(op.code) || writes_memory(op.code))) return;
    ++accesses;
    is_at_the_end = op.code == Code::Vstore && std::ranges::count(kernel.body.ops, id) != 0;
  });
  return accesses == 1 && is_at_the_end;
}

}  // namespace

bool BlockLowering::is_in_pipeline(OpId load) const {
  return mapping_.tile_pipelines && scheduled_.tile_pipelines->of(load) != nullptr;
}

bool BlockLowering::takes_turns() const {
  constexpr int kWarpgroups = 2;
  return mapping_.tile_pipelines && plan_.threads() >> kGroupBits == kWarpgroups;
}

bool BlockLowering::keeps_turn(const Instruction& instruction) {
  return std::holds_alternative<Matmul>(instruction) ||
         std::holds_alternative<AwaitTile>(instruction) ||
         std::holds_alternative<RenameBuffer>(instruction) ||
         std::holds_alternative<Compute>(instruction);
}

void BlockLowering::end_turn() {
  if (!std::exchange(has_turn_, false)) return;
  add(SignalMatmulTurn{});
}

void BlockLowering::release_tiles_of(const std::vector<Fragment>& matmuls) {
  const auto& reads = scheduled_.tile_pipelines->last_reads;
  for (const Fragment& matmul : matmuls) {
    const auto last = reads.find(*planned_.definitions[matmul.value]);
    if (last == reads.end()) continue;
    for (const OpId load : last->second)
      add(ReleaseTile{.load = load, .is_early = !pending_matmuls_.empty()});
  }
}

void BlockLowering::release_tiles_after(OpId id) {
  if (operation(id).code == Code::Dot) return;  // once it is waited for
  const auto& reads = scheduled_.tile_pipelines->last_reads;
  if (const auto last = reads.find(id); last != reads.end())
    for (const OpId load : last->second) add(ReleaseTile{.load = load});
}

void BlockLowering::produce_tiles(const Region& region) {
  const TilePipelines& pipelines = *scheduled_.tile_pipelines;
  for (const OpId id : region.ops) {
    const Operation& op = operation(id);
    bool has_loads = false;
    for (const Region& part : op.regions)
      for_each_op(kernel_, part, [&](OpId inner) { has_loads = has_loads || pipelines.of(inner); });
    if (pipelines.of(id) != nullptr) {
      add(FillTile{.load = id});
    } else if (has_loads) {
      ForLoop loop{.op = id};
      loop.body = body_of([&] {
        produce_tiles(op.regions[0]);
        add(Yield{});
      });
      add(std::move(loop));
    } else if (pipelines.needed.contains(id)) {
      lower(id);
    }
  }
}

void BlockLowering::with_tile_pipelines() {
  constexpr std::int64_t kBarrierBytes = 8;
  PipelineTasks made{.pipelines = scheduled_.tile_pipelines->pipelines};
  for (TilePipeline& pipeline : made.pipelines)
    pipeline.offset = shared_.reserve(pipeline.stage_bytes() * pipeline.count);
  const std::int64_t barriers = shared_.reserve(kSharedAlignment);
  std::int64_t next = barriers;
  for (TilePipeline& pipeline : made.pipelines) {
    pipeline.barriers = next;
    next += 2 * pipeline.count * kBarrierBytes;
  }
  made.turns = next;
  shared_.barrier();  // after the initialization of the mbarriers
  is_unordered_ = stores_once(kernel_, *scheduled_.tile_pipelines);
  made.producer = program_body([&] { produce_tiles(kernel_.body); });
  made.consumer = program_body([&] { lower(kernel_.body); });
  add(std::move(made));
}

}  // namespace tessera::tile::gpu
