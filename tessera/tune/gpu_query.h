#pragma once

#include "tessera/runtime/cuda/session.h"
#include "tessera/support/expected.h"

namespace tessera::tune {

/// GPU of this computer, asked for in a worker process: a process that has used the GPU cannot fork
/// others that do. Without one: `cuda-missing`.
Expected<runtime::cuda::ThisGpu> gpu_in_worker();

}  // namespace tessera::tune
