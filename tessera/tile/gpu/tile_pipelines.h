#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "tessera/runtime/cuda/tensor_map.h"
#include "tessera/tile/gpu/decision.h"
#include "tessera/tile/gpu/loop_pipeline.h"
#include "tessera/tile/gpu/planned_kernel.h"

namespace tessera::tile::gpu {

/// Multi-stage buffer of tiles of one view, with two mbarriers for each stage, full and empty
/// (CUTLASS: PipelineTmaAsync). Producers fill the stages in the order in which the program loads
/// its tiles, and consumers read them in that order.
struct TilePipeline {
  std::vector<StagedOperand> loads = {};
  int count = 0;              // stages
  std::int64_t offset = 0;    // of the first stage
  std::int64_t barriers = 0;  // offset of the mbarriers: those of full stages, then of empty ones

  std::int64_t stage_bytes() const { return shared_room(loads.front().panels.bytes()); }
};

/// Warp specialization of a whole program: producer warps copy all operands of its matmuls, in
/// loops or not, through a pipeline for each view, and consumer warpgroups compute everything else.
/// A matmul waits for its own operands only, also where a loop has several, as in attention.
struct TilePipelines {
  std::vector<TilePipeline> pipelines = {};
  std::set<OpId> needed = {};  // scalars and views that the addresses depend on
  std::vector<runtime::cuda::TensorMap> maps = {};  // one for each pipeline
  /// Loads, by the operation of their region that reads them last: a matmul, or a loop of some.
  std::map<OpId, std::vector<OpId>> last_reads = {};

  const TilePipeline* of(OpId load) const;
};

/// Finds the pipelines of a program.
///
/// Needs:  all matmuls are wgmma, their operands are loaded from views for them alone, or computed
///         in registers; addresses follow from parameters, program ids and indices of loops; no
///         store comes before a load, and programs do not synchronize with each other.
Decision<TilePipelines> find_tile_pipelines(const PlannedKernel& planned);

/// Number of stages of each pipeline, so that all fit into so many bytes: one for a tile that a
/// program loads once, as many as fit for the others.
void choose_stages(TilePipelines& pipelines, int most, std::int64_t bytes);

}  // namespace tessera::tile::gpu
