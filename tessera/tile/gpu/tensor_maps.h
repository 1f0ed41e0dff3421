#pragma once

#include <vector>

#include "tessera/runtime/cuda/tensor_map.h"
#include "tessera/tile/gpu/loop_pipeline.h"

namespace tessera::tile::gpu {

/// TMA tensor maps, one for each prefetched operand of a pipelined loop. Needs views that are
/// parameters of the kernel, or are made of one with extents and strides known.
Decision<std::vector<runtime::cuda::TensorMap>> tensor_maps_of(const PlannedKernel& planned,
                                                               const LoopPipeline& pipeline);

}  // namespace tessera::tile::gpu
