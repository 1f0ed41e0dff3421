#pragma once

#include <set>
#include <utility>
#include <vector>

#include "tessera/tile/gpu/decision.h"
#include "tessera/tile/gpu/panels.h"
#include "tessera/tile/gpu/planned_kernel.h"

namespace tessera::tile::gpu {

/// A matmul operand of a loop that is prefetched into a multi-stage buffer in shared memory by
/// asynchronous copies: each stage holds the tile of one iteration. Where extents are rounded up to
/// powers of two, the rest of the panels is filled with zeros.
struct StagedOperand {
  OpId load = 0;
  Panels panels = {};
  std::int64_t offset = 0;  // bytes from the start of a stage
  /// Axis of the load that is contiguous in a row of the buffer; the other axes, flattened in
  /// order, are the rows.
  std::size_t column = 1;
  std::vector<bool> inside = {};  // axes along which no iteration leaves the bounds of the view
};

/// Software pipeline of a loop: the operands that are prefetched, and the matmuls that overlap with
/// the next iteration.
struct LoopPipeline {
  std::vector<StagedOperand> operands = {};
  std::int64_t bytes = 0;  // size of one stage
  /// Matmuls left in flight when the next iteration begins: their accumulators are read after the
  /// loop only.
  std::set<OpId> pending = {};
};

/// Operands of a pipeline that are loaded by `loads`, and the others.
std::pair<std::vector<StagedOperand>, std::vector<StagedOperand>> split_operands(
    const LoopPipeline& pipeline, const std::vector<OpId>& loads);

/// Software pipelining of a loop: selects the loads to prefetch, which are those that only
/// tensor-core matmuls read, directly, transposed or reshaped to rows, from addresses computable in
/// advance.
///
/// Needs:  `loop` is a For.
/// Leaves: nothing where the loop stores to memory, because prefetching would move loads before
///         stores. With more than two stages, also selects the matmul that overlaps with the next
///         iteration.
Decision<LoopPipeline> pipeline_of(const PlannedKernel& planned, const Operation& loop, int stages);

/// The buffer of a tile that a load copies for matmuls, wherever the load is.
Decision<StagedOperand> staged_tile(const PlannedKernel& planned, OpId load);

/// Dependence of a scalar on the index of a loop. Linear: the first and the last iteration bound
/// all others. Known: computable before the iteration runs.
enum class LoopDependence : std::uint8_t { Fixed, Linear, Known, Unknown };
LoopDependence loop_dependence(const PlannedKernel& planned, const Operation& loop, ValueId id);

}  // namespace tessera::tile::gpu
