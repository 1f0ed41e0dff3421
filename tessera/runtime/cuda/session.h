#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tessera/runtime/session.h"

namespace tessera::runtime::cuda {

/// Creates a session of a GPU program on the first GPU. Sessions of a program share code and
/// weights there, and each has an arena of its own; inputs are copied to the device and outputs
/// back. Where no step needs the host, the first run captures all steps as one CUDA graph, which
/// later runs launch. Without a GPU, with one that the code is not for, or too little memory:
/// `cuda-missing`, `cuda-architecture`, `cuda-memory`.
Expected<std::unique_ptr<Session>> make_session(std::shared_ptr<const LoadedProgram> program,
                                                const SessionOptions& options);

/// Target properties of the GPU of this computer; none without one.
struct ThisGpu {
  std::string architecture;  // `sm_90a` or `sm_80`
  int multiprocessors = 0;
};
std::optional<ThisGpu> this_gpu();

}  // namespace tessera::runtime::cuda
