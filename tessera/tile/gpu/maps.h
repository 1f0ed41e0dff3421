#pragma once

#include <vector>

#include "tessera/runtime/cuda/tensor_map.h"
#include "tessera/tile/gpu/ahead.h"

namespace tessera::tile::gpu {

/// One tensor map for each ring, so that the GPU's copy engine can fill them: of a view that is an
/// argument, or that the kernel makes of one, with all else known.
Decided<std::vector<runtime::cuda::TensorMap>> maps_of(const Planned& planned, const Ahead& ahead);

}  // namespace tessera::tile::gpu
