#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include "tessera/tile/gpu/block_program.h"

/// Names and fields of the instructions of form S, once for the printer and the parser: `fields(x,
/// f)` calls f.op(name, field), f.value(name, field) or f(name, field) for each field, in the order
/// of the text.
namespace tessera::tile::gpu {

/// Name of an instruction in text.
template <class T>
inline constexpr std::string_view kInstructionName = "";
template <>
inline constexpr std::string_view kInstructionName<Compute> = "compute";
template <>
inline constexpr std::string_view kInstructionName<Convert> = "convert";
template <>
inline constexpr std::string_view kInstructionName<Barrier> = "barrier";
template <>
inline constexpr std::string_view kInstructionName<BarrierIfOverlap> = "barrier_if_overlap";
template <>
inline constexpr std::string_view kInstructionName<WaitMatmul> = "wait_matmul";
template <>
inline constexpr std::string_view kInstructionName<ReduceInThread> = "reduce_in_thread";
template <>
inline constexpr std::string_view kInstructionName<ReduceInWarp> = "reduce_in_warp";
template <>
inline constexpr std::string_view kInstructionName<ReduceInBlock> = "reduce_in_block";
template <>
inline constexpr std::string_view kInstructionName<ReduceResult> = "reduce_result";
template <>
inline constexpr std::string_view kInstructionName<Unpack> = "unpack";
template <>
inline constexpr std::string_view kInstructionName<ScanTile> = "scan";
template <>
inline constexpr std::string_view kInstructionName<Move> = "move";
template <>
inline constexpr std::string_view kInstructionName<Matmul> = "matmul";
template <>
inline constexpr std::string_view kInstructionName<HoldOperand> = "hold_operand";
template <>
inline constexpr std::string_view kInstructionName<RenameBuffer> = "rename_buffer";
template <>
inline constexpr std::string_view kInstructionName<AddressView> = "address_view";
template <>
inline constexpr std::string_view kInstructionName<LoadView> = "load_view";
template <>
inline constexpr std::string_view kInstructionName<StoreView> = "store_view";
template <>
inline constexpr std::string_view kInstructionName<LoadPointers> = "load_pointers";
template <>
inline constexpr std::string_view kInstructionName<StorePointers> = "store_pointers";
template <>
inline constexpr std::string_view kInstructionName<AtomicUpdate> = "atomic";
template <>
inline constexpr std::string_view kInstructionName<ShareAtomic> = "share_atomic";
template <>
inline constexpr std::string_view kInstructionName<PrefetchFirst> = "prefetch_first";
template <>
inline constexpr std::string_view kInstructionName<PrefetchConstants> = "prefetch_constants";
template <>
inline constexpr std::string_view kInstructionName<AwaitCopies> = "await_copies";
template <>
inline constexpr std::string_view kInstructionName<PrefetchNext> = "prefetch_next";
template <>
inline constexpr std::string_view kInstructionName<WaitCopies> = "wait_copies";
template <>
inline constexpr std::string_view kInstructionName<EnterStage> = "enter_stage";
template <>
inline constexpr std::string_view kInstructionName<OfWarpgroup> = "of_warpgroup";
template <>
inline constexpr std::string_view kInstructionName<Yield> = "yield";
template <>
inline constexpr std::string_view kInstructionName<ForLoop> = "for";
template <>
inline constexpr std::string_view kInstructionName<WhileLoop> = "while";
template <>
inline constexpr std::string_view kInstructionName<Branch> = "if";
template <>
inline constexpr std::string_view kInstructionName<Versions> = "versions";
template <>
inline constexpr std::string_view kInstructionName<RowProperties> = "row_properties";
template <>
inline constexpr std::string_view kInstructionName<CheckRow> = "check_row";
template <>
inline constexpr std::string_view kInstructionName<RowVersion> = "row_version";
template <>
inline constexpr std::string_view kInstructionName<PartLoop> = "part_loop";
template <>
inline constexpr std::string_view kInstructionName<ReducePart> = "reduce_part";
template <>
inline constexpr std::string_view kInstructionName<FinishParts> = "finish_parts";
template <>
inline constexpr std::string_view kInstructionName<PrefetchLoad> = "prefetch_load";
template <>
inline constexpr std::string_view kInstructionName<TakePrefetched> = "take_prefetched";
template <>
inline constexpr std::string_view kInstructionName<PrefetchProgram> = "prefetch_program";
template <>
inline constexpr std::string_view kInstructionName<WaitPrefetch> = "wait_prefetch";
template <>
inline constexpr std::string_view kInstructionName<ProgramLoop> = "program_loop";
template <>
inline constexpr std::string_view kInstructionName<LaunchDependents> = "launch_dependents";
template <>
inline constexpr std::string_view kInstructionName<AwaitGrids> = "await_grids";
template <>
inline constexpr std::string_view kInstructionName<AwaitTurn> = "await_turn";
template <>
inline constexpr std::string_view kInstructionName<SignalTurn> = "signal_turn";
template <>
inline constexpr std::string_view kInstructionName<AwaitStage> = "await_stage";
template <>
inline constexpr std::string_view kInstructionName<ReleaseStage> = "release_stage";
template <>
inline constexpr std::string_view kInstructionName<FillStages> = "fill_stages";
template <>
inline constexpr std::string_view kInstructionName<FillConstants> = "fill_constants";
template <>
inline constexpr std::string_view kInstructionName<WarpTasks> = "warp_tasks";
template <>
inline constexpr std::string_view kInstructionName<FillTile> = "fill_tile";
template <>
inline constexpr std::string_view kInstructionName<AwaitTile> = "await_tile";
template <>
inline constexpr std::string_view kInstructionName<ReleaseTile> = "release_tile";
template <>
inline constexpr std::string_view kInstructionName<AwaitMatmulTurn> = "await_matmul_turn";
template <>
inline constexpr std::string_view kInstructionName<SignalMatmulTurn> = "signal_matmul_turn";
template <>
inline constexpr std::string_view kInstructionName<PipelineTasks> = "pipeline_tasks";

template <class T, class... Of>
concept Is = (std::same_as<std::remove_const_t<T>, Of> || ...);

// ---- parts of instructions ----

template <Is<ErfTerm> T>
void fields(T& x, auto& f) {
  f.value("of", x.of);
  f("scale", x.scale);
  f.value("factor", x.factor);
}
template <Is<Panels> T>
void fields(T& x, auto& f) {
  f("column_axis", x.column_axis);
  f("rows", x.rows);
  f("columns", x.columns);
  f("width", x.width);
}
template <Is<StagedOperand> T>
void fields(T& x, auto& f) {
  f.op("load", x.load);
  f("panels", x.panels);
  f("offset", x.offset);
  f("column", x.column);
  f("inside", x.inside);
}
template <Is<LoopPipeline> T>
void fields(T& x, auto& f) {
  f("operands", x.operands);
  f("bytes", x.bytes);
  f.op("pending", x.pending);
}
template <Is<Stages> T>
void fields(T& x, auto& f) {
  f("count", x.count);
  f("is_alternating", x.is_alternating);
  f("offset", x.offset);
  f("pipeline", x.pipeline);
}
template <Is<TilePipeline> T>
void fields(T& x, auto& f) {
  f("count", x.count);
  f("offset", x.offset);
  f("barriers", x.barriers);
  f("loads", x.loads);
}
template <Is<DotBuffer> T>
void fields(T& x, auto& f) {
  f("panels", x.panels);
  f("offset", x.offset);
  f("is_cleared", x.is_cleared);
}
template <Is<DotOperand> T>
void fields(T& x, auto& f) {
  f("place", x.place);
  f("buffer", x.buffer);
}
template <Is<KnownAccess> T>
void fields(T& x, auto& f) {
  f("run", x.run);
  f("constant", x.constant);
  f("unaligned", x.unaligned);
  f("edge", x.edge);
  f("inside", x.inside);
}
template <Is<RowCache> T>
void fields(T& x, auto& f) {
  f("offset", x.offset);
  f("parts", x.parts);
  f("is_whole", x.is_whole);
  f("is_filled", x.is_filled);
}
template <Is<WarpBox> T>
void fields(T& x, auto& f) {
  f("held", x.held);
  f("bits", x.bits);
  f("rows", x.rows);
  f("columns", x.columns);
}
template <Is<StoreBoxes> T>
void fields(T& x, auto& f) {
  f("box", x.box);
  f("corner", x.corner);
}
template <Is<ReduceInBlock::Exchange> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("parts", x.parts);
}
template <Is<ScanTile::Exchange> T>
void fields(T& x, auto& f) {
  f("parts", x.parts);
  f("barrier_before", x.barrier_before);
}
template <Is<PrefetchBuffer> T>
void fields(T& x, auto& f) {
  f("offset", x.offset);
  f("slot", x.slot);
  f("is_fixed", x.is_fixed);
}

template <Is<SharedMemoryUse> T>
void fields(T& x, auto& f) {
  f("shared", x.bytes);
  f("own_bytes", x.own_bytes);
}

// ---- instructions ----

template <Is<Barrier, LaunchDependents, AwaitGrids, WaitPrefetch, AwaitTurn, SignalTurn, AwaitStage,
             AwaitMatmulTurn, SignalMatmulTurn>
              T>
void fields(T& /*x*/, auto& /*f*/) {}
template <Is<Compute> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("layout", x.layout);
  f("source", x.source);
  f("erf", x.erf);
}
template <Is<Convert> T>
void fields(T& x, auto& f) {
  f.value("value", x.value);
  f("from", x.from);
  f("to", x.to);
  f("through", x.through);
}
template <Is<BarrierIfOverlap> T>
void fields(T& x, auto& f) {
  f.op("accesses", x.accesses);
}
template <Is<WaitMatmul> T>
void fields(T& x, auto& f) {
  f("matmuls", x.matmuls);
  f("pending", x.pending);
}
template <Is<ReduceInThread> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("layout", x.layout);
  f("fma", x.fma);
}
template <Is<ReduceInWarp> T>
void fields(T& x, auto& f) {
  f.op("ops", x.ops);
}
template <Is<ReduceInBlock> T>
void fields(T& x, auto& f) {
  f("exchanges", x.exchanges);
}
template <Is<ReduceResult> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("result", x.result);
  f("layout", x.layout);
}
template <Is<Unpack> T>
void fields(T& x, auto& f) {
  f.value("value", x.value);
}
template <Is<ScanTile> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("layout", x.layout);
  f("exchanges", x.exchanges);
}
template <Is<Move> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("from", x.from);
  f("to", x.to);
  f("through", x.through);
}
template <Is<Matmul> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("layout", x.layout);
  f("a", x.a);
  f("b", x.b);
  f("scalars", x.scalars);
  f("completion", x.completion);
}
template <Is<HoldOperand> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("layout", x.layout);
  f("buffer", x.buffer);
}
template <Is<RenameBuffer> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
}
template <Is<AddressView> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("layout", x.layout);
  f("run", x.run);
  f("known", x.known);
  f("is_masked", x.is_masked);
}
template <Is<LoadView> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("cache", x.cache);
  f("keeps_packed", x.keeps_packed);
}
template <Is<StoreView> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("held", x.held);
  f("exchange", x.exchange);
  f("boxes", x.boxes);
  f("epilogue", x.epilogue);
}
template <Is<LoadPointers, StorePointers> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("layout", x.layout);
}
template <Is<AtomicUpdate> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("layout", x.layout);
  f("is_shared", x.is_shared);
}
template <Is<ShareAtomic> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("layout", x.layout);
  f("through", x.through);
}
template <Is<PrefetchFirst> T>
void fields(T& x, auto& f) {
  f.op("loop", x.loop);
  f("stages", x.stages);
  f("is_published", x.is_published);
  f.op("constants", x.constants);
}
template <Is<PrefetchConstants> T>
void fields(T& x, auto& f) {
  f.op("loop", x.loop);
  f("stages", x.stages);
  f("is_published", x.is_published);
  f.op("loads", x.loads);
}
template <Is<FillStages> T>
void fields(T& x, auto& f) {
  f.op("constants", x.constants);
}
template <Is<FillConstants> T>
void fields(T& x, auto& f) {
  f.op("loads", x.loads);
}
template <Is<AwaitCopies> T>
void fields(T& x, auto& f) {
  f.op("loop", x.loop);
}
template <Is<PrefetchNext> T>
void fields(T& x, auto& f) {
  f.op("loop", x.loop);
  f("is_published", x.is_published);
  f("further", x.further);
}
template <Is<WaitCopies> T>
void fields(T& x, auto& f) {
  f.op("loop", x.loop);
}
template <Is<EnterStage> T>
void fields(T& x, auto& f) {
  f.op("loop", x.loop);
}
template <Is<OfWarpgroup> T>
void fields(T& x, auto& f) {
  f("warpgroup", x.warpgroup);
  f("body", x.body);
}
template <Is<Yield> T>
void fields(T& x, auto& f) {
  f("values", x.values);
}
template <Is<ForLoop> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("start", x.start);
  f("params", x.params);
  f("results", x.results);
  f("body", x.body);
}
template <Is<WhileLoop> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("start", x.start);
  f("params", x.params);
  f("body_params", x.body_params);
  f("results", x.results);
  f("condition", x.condition);
  f("body", x.body);
}
template <Is<Branch> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("results", x.results);
  f("then", x.then);
  f("otherwise", x.otherwise);
}
template <Is<Versions> T>
void fields(T& x, auto& f) {
  f.op("accesses", x.accesses);
  f("fast", x.fast);
  f("general", x.general);
}
template <Is<RowProperties> T>
void fields(T& x, auto& f) {
  f("reads_constants", x.reads_constants);
  f("body", x.body);
}
template <Is<CheckRow> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("run", x.run);
  f("is_fixed", x.is_fixed);
}
template <Is<RowVersion> T>
void fields(T& x, auto& f) {
  f("alignment", x.alignment);
  f("body", x.body);
}
template <Is<PartLoop> T>
void fields(T& x, auto& f) {
  f.op("folds", x.folds);
  f("is_first", x.is_first);
  f("is_middle", x.is_middle);
  f("is_reversible", x.is_reversible);
  f("body", x.body);
}
template <Is<ReducePart> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("layout", x.layout);
  f("is_masked", x.is_masked);
  f("fma", x.fma);
}
template <Is<FinishParts> T>
void fields(T& x, auto& f) {
  f("operands", x.operands);
  f.op("ops", x.ops);
}
template <Is<PrefetchLoad> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("buffer", x.buffer);
}
template <Is<TakePrefetched> T>
void fields(T& x, auto& f) {
  f.op("op", x.op);
  f("buffer", x.buffer);
  f("keeps_packed", x.keeps_packed);
}
template <Is<PrefetchProgram> T>
void fields(T& x, auto& f) {
  f("ahead", x.ahead);
  f("is_prologue", x.is_prologue);
  f("body", x.body);
}
template <Is<ProgramLoop> T>
void fields(T& x, auto& f) {
  f("body", x.body);
}
template <Is<ReleaseStage> T>
void fields(T& x, auto& f) {
  f.op("loop", x.loop);
  f("is_last", x.is_last);
}
template <Is<FillTile, AwaitTile> T>
void fields(T& x, auto& f) {
  f.op("load", x.load);
}
template <Is<ReleaseTile> T>
void fields(T& x, auto& f) {
  f.op("load", x.load);
  f("is_early", x.is_early);
}
template <Is<PipelineTasks> T>
void fields(T& x, auto& f) {
  f("pipelines", x.pipelines);
  f("turns", x.turns);
  f("start", x.start);
  f("producer", x.producer);
  f("consumer", x.consumer);
}
template <Is<WarpTasks> T>
void fields(T& x, auto& f) {
  f("stages", x.stages);
  f("barriers", x.barriers);
  f("own_bytes", x.own_bytes);
  f("start", x.start);
  f("producer_start", x.producer_start);
  f("producer", x.producer);
  f("skipped", x.skipped);
  f("consumer", x.consumer);
}

}  // namespace tessera::tile::gpu
