#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "tessera/runtime/cuda/device.h"
#include "tessera/runtime/session.h"

namespace tessera::runtime::cuda {

/// GPU state that all sessions of a program share: loaded kernels and uploaded weights.
struct Loaded {
  Device device;
  std::vector<Function> functions = {};  // by kernel
  Memory weights = {};
};

/// The shared state, created by the first session that asks. Kernels are assembled on several
/// threads; the cache, if there is one, keeps the machine code.
Expected<std::shared_ptr<const Loaded>> loaded(const LoadedProgram& program,
                                               const std::filesystem::path& cache);

}  // namespace tessera::runtime::cuda
