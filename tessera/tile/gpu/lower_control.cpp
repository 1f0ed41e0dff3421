#include <algorithm>

#include "tessera/tile/gpu/block_lowering.h"

// Loops and branches. A loop whose matmuls read tiles directly from memory prefetches the next
// iterations into a multi-stage buffer.

namespace tessera::tile::gpu {

std::vector<Fragment> BlockLowering::at_home(const std::vector<ValueId>& ids) const {
  std::vector<Fragment> fragments;
  for (const ValueId id : ids)
    fragments.push_back(
        {id, type(id).is_scalar() ? std::nullopt : std::optional<Layout>(home(id))});
  return fragments;
}

std::vector<Fragment> BlockLowering::handed_on(const std::vector<ValueId>& values,
                                               const std::vector<ValueId>& homes) {
  std::vector<Fragment> fragments;
  for (std::size_t i = 0; i < values.size(); ++i) {
    fragments.push_back({.value = values[i]});
    if (type(values[i]).is_scalar()) continue;
    fragments.back().layout = home(homes[i]);
    require(values[i], home(homes[i]));
  }
  return fragments;
}

void BlockLowering::bind(const std::vector<ValueId>& ids) {
  for (const ValueId id : ids)
    if (!type(id).is_scalar()) define(id, home(id));
}

void BlockLowering::yield(const Region& region, const std::vector<ValueId>& homes,
                          const std::optional<ReleaseStage>& release) {
  if (error_) return;
  wait_for_all();
  std::vector<Fragment> values = handed_on(operation(region.ops.back()).in, homes);
  if (release) add(*release);
  add(Yield{.values = std::move(values)});
}

bool BlockLowering::any_writes(const Operation& op) const {
  bool writes = false;
  for (const Region& inner : op.regions)
    for_each_op(kernel_, inner,
                [&](OpId id) { writes = writes || writes_memory(kernel_.ops[id].code); });
  return writes;
}

void BlockLowering::join_paths(bool writes) {
  shared_.use_scratch();
  accesses_.join(writes, shared_.barriers());
}

bool BlockLowering::is_filled_by_producers(OpId loop) const {
  return mapping_.warp_specialized && !mapping_.tile_pipelines &&
         scheduled_.warp_specialization->loop == loop;
}

void BlockLowering::prefetch_next(OpId loop) {
  add(PrefetchNext{.loop = loop, .is_published = plan_.any_wgmma()});
}

void BlockLowering::for_loop(OpId id) {
  const Operation& op = operation(id);
  const Region& region = op.regions[0];
  wait_for_all();
  if (!mapping_.tile_pipelines) require_fragments(op);
  const std::vector<HoldOperand> held = room_for_operands(op);
  const bool by_producers = is_filled_by_producers(id);
  std::optional<LoopPipeline> pipeline;
  if (by_producers) {
    pipeline = scheduled_.warp_specialization->pipeline;
  } else if (const auto found = pipeline_of(planned_, op, mapping_.stages);
             found && !mapping_.tile_pipelines) {
    pipeline = *found;
  }
  const bool alone = pipeline && !by_producers;
  const bool writes = any_writes(op);
  std::int64_t reserved = 0;
  if (by_producers) add(AwaitTurn{});
  if (alone) {
    reserved = pipeline->bytes * mapping_.stages;
    const std::int64_t offset = shared_.reserve(reserved);
    shared_.barrier();  // part of the instruction
    add(PrefetchFirst{.loop = id,
                      .stages = {.pipeline = *pipeline, .offset = offset, .count = mapping_.stages},
                      .is_published = plan_.any_wgmma()});
  }
  for (const HoldOperand& hold : held) add(hold);
  if (!held.empty() && !alone) barrier();  // an iteration begins with one where copies are awaited
  ForLoop loop{.op = id};
  loop.start = handed_on({op.in.begin() + 3, op.in.end()}, op.out);
  join_paths(writes);
  open_scope();
  const std::set<ValueId> buffers_before = in_buffers_;
  std::set<OpId> overlapped = pipeline ? pipeline->pending : std::set<OpId>{};
  std::optional<OpId> prefetching = alone ? std::optional(id) : std::nullopt;
  loops_.push_back(id);
  loop.body = body_of([&] {
    if (alone) {
      shared_.barrier();  // part of the instruction
      add(AwaitCopies{.loop = id});
      if (pipeline->pending.empty()) prefetch_next(id);
    } else if (by_producers) {
      add(AwaitStage{});
    }
    if (pipeline)
      for (const StagedOperand& staged : pipeline->operands)
        in_buffers_.insert(operation(staged.load).out[0]);
    std::swap(next_iteration_, overlapped);
    std::swap(prefetching_loop_, prefetching);
    const std::vector<ValueId> params(region.params.begin() + 1, region.params.end());
    loop.params = at_home(params);
    bind(params);
    lower(region);
    yield(region, op.out, by_producers ? std::optional(ReleaseStage{.loop = id}) : std::nullopt);
  });
  loops_.pop_back();
  std::swap(next_iteration_, overlapped);
  std::swap(prefetching_loop_, prefetching);
  close_scope();
  in_buffers_ = buffers_before;
  shared_.release(reserved);
  join_paths(writes);
  loop.results = at_home(op.out);
  add(std::move(loop));
  bind(op.out);
  if (by_producers) add(SignalTurn{});
  if (!pipeline || pipeline->pending.empty()) return;
  const std::vector<ValueId>& yielded = operation(region.ops.back()).in;
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    const std::optional<OpId>& by = planned_.definitions[yielded[i]];
    if (by && pipeline->pending.contains(*by))
      add(WaitMatmul{.matmuls = at_home({op.out[i]}), .pending = 0});
  }
  if (alone) barrier();  // all threads have read the stage buffers
  if (by_producers) add(ReleaseStage{.loop = id, .is_last = true});
}

void BlockLowering::while_loop(OpId id) {
  const Operation& op = operation(id);
  wait_for_all();
  const bool writes = any_writes(op);
  WhileLoop loop{.op = id};
  loop.start = handed_on(op.in, op.out);
  join_paths(writes);
  loops_.push_back(id);
  const auto lowered = [&](const Region& region, std::vector<Fragment>& params, bool yields) {
    return body_of([&] {
      open_scope();
      params = at_home(region.params);
      bind(region.params);
      lower(region);
      if (yields) yield(region, op.out);
      close_scope();
    });
  };
  loop.condition = lowered(op.regions[0], loop.params, false);
  loop.body = lowered(op.regions[1], loop.body_params, true);
  loops_.pop_back();
  join_paths(writes);
  loop.results = at_home(op.out);
  add(std::move(loop));
  bind(op.out);
}

void BlockLowering::branch(OpId id) {
  const Operation& op = operation(id);
  wait_for_all();
  const bool writes = any_writes(op);
  const auto lowered = [&](const Region& region) {
    return body_of([&] {
      open_scope();
      join_paths(writes);
      lower(region);
      yield(region, op.out);
      close_scope();
    });
  };
  Branch made{.op = id};
  made.then = lowered(op.regions[0]);
  made.otherwise = lowered(op.regions[1]);
  join_paths(writes);
  made.results = at_home(op.out);
  add(std::move(made));
  bind(op.out);
}

}  // namespace tessera::tile::gpu
