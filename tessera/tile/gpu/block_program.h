#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/tile/gpu/layout.h"
#include "tessera/tile/gpu/loop_pipeline.h"
#include "tessera/tile/gpu/panels.h"
#include "tessera/tile/gpu/programs.h"
#include "tessera/tile/gpu/row_passes.h"
#include "tessera/tile/gpu/shared_tile.h"
#include "tessera/tile/gpu/tile_pipelines.h"
#include "tessera/tile/gpu/warp_box.h"
#include "tessera/tile/kernel.h"

/// Form S for GPUs: the program of a thread block (docs/gpu.md, ADR 19).
///
/// The operations of form T stay what they are; form S says in which order they are carried out and
/// in which layout each tile is held, and adds what T does not have: conversions between layouts,
/// buffers in shared memory, barriers, asynchronous copies with their stages, tasks. A tile of T
/// may be held in several layouts: a *fragment* is a value of T in one of them. An instruction uses
/// fragments that earlier instructions on its path have made, and no others.
namespace tessera::tile::gpu {

struct Instruction;
/// Instructions in order. A class of its own, because instructions have bodies: its members are
/// defined in block_program.cpp, where Instruction is complete.
struct Body : std::vector<Instruction> {
  Body();
  Body(const Body& other);
  Body(Body&& other) noexcept;
  Body& operator=(const Body& other);
  Body& operator=(Body&& other) noexcept;
  ~Body();
};

/// A value of T in one of its layouts; a scalar has none.
struct Fragment {
  ValueId value = 0;
  std::optional<Layout> layout = {};
};

// ---- values ----

/// 1 + erf(scale · of), times a factor: operations of T that are evaluated as one.
struct ErfTerm {
  ValueId of = 0;
  double scale = 1;
  std::optional<ValueId> factor = {};
  bool operator==(const ErfTerm&) const = default;
};
/// Evaluates an operation of T: scalars and views in every thread, tiles in a layout. The operands
/// have the same layout, or `source` where the operation moves index bits (broadcast, permute,
/// reshape).
struct Compute {
  OpId op = 0;
  std::optional<Layout> layout = {};  // none: a scalar or a view
  std::optional<Layout> source = {};
  std::optional<ErfTerm> erf = {};
};

/// Converts a tile to another layout: through shared memory, or by renaming registers.
struct Convert {
  ValueId value = 0;
  Layout from, to;
  std::optional<SharedTile> through = {};
};

// ---- synchronization ----

/// Barrier of all threads that run the program.
struct Barrier {};

/// Barrier where accesses of different threads to global memory overlap, which is known at launch:
/// pairs of a later and an earlier access.
struct BarrierIfOverlap {
  std::vector<std::pair<OpId, OpId>> accesses = {};
};

/// Waits until at most `pending` groups of asynchronous matmuls are in flight; these ones are
/// complete then.
struct WaitMatmul {
  std::vector<Fragment> matmuls = {};
  std::size_t pending = 0;
};

/// Programmatic dependent launch: the blocks of the next grid may be scheduled from here on, once
/// all blocks of this one have come here. They await this grid before they access memory.
struct LaunchDependents {};
/// Waits until the grids that this one depends on are complete and their writes visible.
struct AwaitGrids {};

// ---- reductions, scans, data movement ----

/// Reduces the elements that a thread holds. `fma`: a sum of products, whose factors are fragments.
struct ReduceInThread {
  OpId op = 0;
  Layout layout;
  bool fma = false;
};
/// Combines partial results of reductions between the lanes of a warp, interleaved.
struct ReduceInWarp {
  std::vector<OpId> ops = {};
};
/// Combines partial results of reductions between warps, which exchange them together.
struct ReduceInBlock {
  struct Exchange {
    OpId op = 0;
    std::vector<SharedTile> parts = {};  // one for each element of a partial result
  };
  std::vector<Exchange> exchanges = {};
};
/// Result of a reduction, as a fragment of the layout that is left of that of its operands.
struct ReduceResult {
  OpId op = 0;
  std::size_t result = 0;
  Layout layout;
};
/// Unpacks a tile of 16-bit elements again, so that it is not live unpacked up to here.
struct Unpack {
  ValueId value = 0;
};
/// Scan, with one exchange for each bit of its axis that is a warp.
struct ScanTile {
  OpId op = 0;
  Layout layout;
  struct Exchange {
    std::vector<SharedTile> parts = {};
    bool barrier_before = false;
  };
  std::vector<Exchange> exchanges = {};
};
/// Gather, concat, slice and reshape, through shared memory.
struct Move {
  OpId op = 0;
  std::vector<Layout> from = {};  // of the operands
  Layout to;
  SharedTile through;
};

// ---- matmuls ----

/// Buffer that an operand is copied to. `is_cleared`: padding along k is filled with zeros first.
struct DotBuffer {
  Panels panels = {};
  std::int64_t offset = 0;
  bool is_cleared = false;
};
/// Operand of a matmul: in registers, in a buffer that was filled before, or copied to one.
struct DotOperand {
  enum class Place : std::uint8_t { Registers, InBuffer, ToBuffer };
  Place place = Place::InBuffer;
  std::optional<DotBuffer> buffer = {};  // ToBuffer
};
struct Matmul {
  OpId op = 0;
  Layout layout;
  DotOperand a = {}, b = {};
  std::vector<SharedTile> scalars = {};  // both operands, without tensor cores
  /// When the accumulators are complete: at once, where they are waited for, or one iteration
  /// later.
  enum class Completion : std::uint8_t { Now, Awaited, NextIteration };
  Completion completion = Completion::Now;
};
/// Stores the first operand of a matmul, which is in registers as its fragments, to a buffer of
/// shared memory that it stays in; a barrier follows before it is read.
struct HoldOperand {
  OpId op = 0;  // the matmul
  Layout layout;
  DotBuffer buffer = {};
};
/// Gives a tile in shared memory another name: transposed or reshaped, it is the same buffer.
struct RenameBuffer {
  OpId op = 0;
};

// ---- global memory ----

/// Rows of a program that are cached in shared memory between passes over their parts.
struct RowCache {
  std::int64_t offset = 0, parts = 0;
  bool is_whole = false;   // all parts are cached
  bool is_filled = false;  // by an earlier pass
};
/// Addresses of an access to a view, of vectors of `run` elements: computed before the operands of
/// the access are exchanged, because branches and barriers come between.
struct AddressView {
  OpId op = 0;
  Layout layout;
  int run = 1;
  std::optional<KnownAccess> known = {};
  bool is_masked = false;  // parts of rows: elements may lie outside of the row
};
/// Accesses at the addresses of an AddressView.
struct LoadView {
  OpId op = 0;
  std::optional<RowCache> cache = {};
  bool keeps_packed = false;  // 16-bit elements are unpacked again after a reduction
};
/// Exchange of a tile box by box within each warp.
struct StoreBoxes {
  WarpBox box;
  SharedTile corner;  // of the first warp; those of the others follow
};
struct StoreView {
  OpId op = 0;
  /// Exchange of elements that a thread does not hold contiguously: by the block, or box by box
  /// within each warp.
  std::optional<SharedTile> exchange = {};
  std::optional<StoreBoxes> boxes = {};
  Body epilogue = {};               // computed box by box; the last one is the tile that is stored
  std::optional<Layout> held = {};  // of the tile, where it is exchanged
};
/// Accesses through pointers.
struct LoadPointers {
  OpId op = 0;
  Layout layout;
};
struct StorePointers {
  OpId op = 0;
  Layout layout;
};
struct AtomicUpdate {
  OpId op = 0;
  Layout layout;
  bool is_shared = false;  // ShareAtomic follows
};
/// Hands the old value of an atomic operation to all threads that hold its element.
struct ShareAtomic {
  OpId op = 0;
  Layout layout;
  SharedTile through;
};

// ---- control ----

/// Multi-stage buffer of a pipelined loop.
struct Stages {
  LoopPipeline pipeline = {};
  std::int64_t offset = 0;  // of the first stage
  int count = 0;
  /// Two warpgroups read the stages half an iteration apart (alternate_warpgroups.h), so that a
  /// stage is free one iteration later.
  bool is_alternating = false;
  /// Iterations whose copies are in flight when one begins.
  int in_flight() const { return is_alternating ? count - 2 : count - 1; }
};
/// Starts the copies of the first iterations of a loop, after a barrier: previous contents have
/// been read.
struct PrefetchFirst {
  OpId loop = 0;
  Stages stages = {};
  bool is_published = false;         // copies through registers are made visible to wgmma
  std::vector<OpId> constants = {};  // loads that PrefetchConstants has started
};
/// Starts the copies of the constants of the first iterations of a loop, before other grids are
/// awaited. PrefetchFirst of the loop follows.
struct PrefetchConstants {
  OpId loop = 0;
  Stages stages = {};
  bool is_published = false;
  std::vector<OpId> loads = {};
};
/// In a loop: waits for the copies of this iteration, with a barrier.
struct AwaitCopies {
  OpId loop = 0;
};
/// In a loop: starts the copies of a later iteration. All threads have read what they overwrite,
/// which is the stage of the previous iteration. Before the loop: relative to its first iteration.
struct PrefetchNext {
  OpId loop = 0;
  bool is_published = false;  // copies through registers are made visible to wgmma
  int further = 0;            // iterations after the one whose copies are due
};
/// Waits for the copies of this thread for the next iteration; before the loop, for the first.
struct WaitCopies {
  OpId loop = 0;
};
/// In a loop: the stage of this iteration is read from here on; its copies have been waited for.
struct EnterStage {
  OpId loop = 0;
};
/// Executed by the threads of one warpgroup.
struct OfWarpgroup {
  int warpgroup = 0;
  Body body = {};
};
/// Values that an iteration or a branch hands on, each in the layout of what receives it.
struct Yield {
  std::vector<Fragment> values = {};
};
struct ForLoop {
  OpId op = 0;
  std::vector<Fragment> start = {}, params = {}, results = {};
  Body body = {};
};
struct WhileLoop {
  OpId op = 0;
  std::vector<Fragment> start = {}, params = {}, body_params = {}, results = {};
  Body condition = {}, body = {};
};
struct Branch {
  OpId op = 0;
  std::vector<Fragment> results = {};
  Body then = {}, otherwise = {};
};

// ---- versions of rows, parts of rows ----

/// Two versions of the rest of the program: `fast` where all of these accesses are as known.
struct Versions {
  std::vector<std::pair<OpId, KnownAccess>> accesses = {};
  Body fast = {}, general = {};
};
/// Alignment, bounds and overlap of rows that are processed in parts: computed from the access of
/// each CheckRow in the body.
struct RowProperties {
  bool reads_constants = false;  // memory that all programs read
  Body body = {};
};
struct CheckRow {
  OpId op = 0;
  int run = 1;
  bool is_fixed = false;  // the same for all programs
};
/// One version of the passes over the parts of rows.
struct RowVersion {
  RowAlignment alignment = RowAlignment::Unknown;
  Body body = {};
};
/// Loop over parts of a row: those in its middle, or the rest.
struct PartLoop {
  std::vector<OpId> folds = {};  // reductions over the parts
  bool is_first = false;         // partial results start as neutral elements
  bool is_middle = false;
  bool is_reversible = false;  // the order of parts is that of memmove
  Body body = {};
};
/// Combines a part with the partial result of a thread.
struct ReducePart {
  OpId op = 0;
  Layout layout;
  bool is_masked = false, fma = false;
};
/// Partial results of all parts, as those of ReduceInThread.
struct FinishParts {
  std::vector<Fragment> operands = {};
  std::vector<OpId> ops = {};
};

// ---- persistent blocks ----

/// Buffer of a load that a thread prefetches for itself for the next program.
struct PrefetchBuffer {
  std::int64_t offset = 0, slot = 0;  // in shared memory; bytes of one program
  bool is_fixed = false;              // loaded once for all programs
};
struct PrefetchLoad {
  OpId op = 0;
  PrefetchBuffer buffer = {};
};
struct TakePrefetched {
  OpId op = 0;
  PrefetchBuffer buffer = {};
  bool keeps_packed = false;
};
/// Copies of the program that is `ahead` of the current one: `prologue` of the first one.
struct PrefetchProgram {
  int ahead = 0;
  bool is_prologue = false;
  Body body = {};
};
struct WaitPrefetch {};
/// Persistent block: runs the body for every program of it.
struct ProgramLoop {
  Body body = {};
};

// ---- warp specialization ----

/// Consumers wait for their turn, and hand it on; wait for a full stage, and release it.
struct AwaitTurn {};
struct SignalTurn {};
struct AwaitStage {};
struct ReleaseStage {
  OpId loop = 0;
  bool is_last = false;  // after the loop
};
/// Producers fill the stages for all iterations of the loop.
struct FillStages {
  std::vector<OpId> constants = {};  // loads that FillConstants has started for the first stages
};
/// Producers start the copies of constants for the stages of the first program of a block, before
/// other grids are awaited.
struct FillConstants {
  std::vector<OpId> loads = {};
};
/// Tasks of a warp-specialized block: producer warps and consumer warpgroups, with mbarriers.
struct WarpTasks {
  Stages stages = {};
  std::int64_t barriers = 0;   // offset of the mbarriers: full, empty, order
  std::int64_t own_bytes = 0;  // shared memory of each consumer group, beyond the common part
  Body start = {};             // of all threads, once
  Body producer_start = {};    // once, with the first program of the block
  Body producer = {};          // for each program
  Body consumer = {};          // for each program
  Body skipped = {};           // of a program that the other consumer group runs
};

/// Producers wait until the next stage of the pipeline of a load is empty, and copy its tile there.
struct FillTile {
  OpId load = 0;
};
/// Consumers wait for the tile of a load, which matmuls read from here on.
struct AwaitTile {
  OpId load = 0;
};
/// The matmuls that read the tile of a load are complete: its stage may be filled again.
struct ReleaseTile {
  OpId load = 0;
  bool is_early = false;  // other matmuls are in flight: not behind the computation that follows
};
/// Ping-pong: a warpgroup waits until the others have issued their matmuls, and lets the next one
/// issue its own, so that its softmax runs under theirs.
struct AwaitMatmulTurn {};
struct SignalMatmulTurn {};
/// Tasks of a warp-specialized block whose producers fill a pipeline for each view.
struct PipelineTasks {
  std::vector<TilePipeline> pipelines = {};
  std::int64_t turns = 0;  // offset of the mbarriers of the warpgroups
  Body start = {};         // of all threads, once
  Body producer = {};      // for each program
  Body consumer = {};      // for each program
};

using AnyInstruction =
    std::variant<Compute, Convert, Barrier, BarrierIfOverlap, WaitMatmul, LaunchDependents,
                 AwaitGrids, ReduceInThread, ReduceInWarp, ReduceInBlock, ReduceResult, Unpack,
                 ScanTile, Move, Matmul, HoldOperand, RenameBuffer, AddressView, LoadView,
                 StoreView, LoadPointers, StorePointers, AtomicUpdate, ShareAtomic, PrefetchFirst,
                 PrefetchConstants, AwaitCopies, PrefetchNext, WaitCopies, EnterStage, OfWarpgroup,
                 Yield, ForLoop, WhileLoop, Branch, Versions, RowProperties, CheckRow, RowVersion,
                 PartLoop, ReducePart, FinishParts, PrefetchLoad, TakePrefetched, PrefetchProgram,
                 WaitPrefetch, ProgramLoop, AwaitTurn, SignalTurn, AwaitStage, ReleaseStage,
                 FillStages, FillConstants, WarpTasks, FillTile, AwaitTile, ReleaseTile,
                 AwaitMatmulTurn, SignalMatmulTurn, PipelineTasks>;
/// Its special members are defined in block_program.cpp: compilers need seconds for those of so
/// many alternatives.
struct Instruction : AnyInstruction {
  using AnyInstruction::AnyInstruction;
  Instruction(const Instruction& other);
  Instruction(Instruction&& other) noexcept;
  Instruction& operator=(const Instruction& other);
  Instruction& operator=(Instruction&& other) noexcept;
  ~Instruction();
};

/// Shared memory of a block. `own_bytes`: of each of its programs, where it runs several, or of
/// each consumer group beyond the common part.
struct SharedMemoryUse {
  std::int64_t bytes = 0, own_bytes = 0;
};

struct BlockProgram {
  Body body = {};
  SharedMemoryUse shared = {};
};

}  // namespace tessera::tile::gpu
