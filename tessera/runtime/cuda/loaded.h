#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "tessera/runtime/cuda/device.h"
#include "tessera/runtime/session.h"

namespace tessera::runtime::cuda {

/// What all sessions of a program share on a GPU.
struct Loaded {
  Device device;
  std::vector<Function> functions = {};  // by kernel
  Memory weights = {};
};

/// Made by the first session that asks. Kernels are assembled on several threads; a cache, where
/// there is one, keeps what comes of them.
Expected<std::shared_ptr<const Loaded>> loaded(const LoadedProgram& program,
                                               const std::filesystem::path& cache);

}  // namespace tessera::runtime::cuda
