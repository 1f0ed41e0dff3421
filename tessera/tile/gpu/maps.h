#pragma once

#include <vector>

#include "tessera/runtime/cuda/tensor_map.h"
#include "tessera/tile/gpu/ahead.h"

namespace tessera::tile::gpu {

/// TMA tensor maps, one for each prefetched operand of a pipelined loop. Needs views that are
/// parameters of the kernel, or are made of one with extents and strides known.
Decided<std::vector<runtime::cuda::TensorMap>> maps_of(const Planned& planned, const Ahead& ahead);

}  // namespace tessera::tile::gpu
