#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "tessera/runtime/cuda/device.h"
#include "tessera/runtime/cuda/pinned_pool.h"
#include "tessera/runtime/session.h"

namespace tessera::runtime::cuda {

/// GPU state that all sessions of a program share: loaded kernels and uploaded weights.
struct GpuProgram {
  Device device;
  std::vector<Function> functions = {};  // by kernel
  Memory weights = {};
  std::shared_ptr<PinnedPool> pinned = pinned_pool(device);
};

/// The shared state, created by the first session that asks. Kernels are assembled on several
/// threads; the cache, if there is one, keeps the machine code.
Expected<std::shared_ptr<const GpuProgram>> gpu_program(const LoadedProgram& program,
                                                        const std::filesystem::path& cache);

}  // namespace tessera::runtime::cuda
