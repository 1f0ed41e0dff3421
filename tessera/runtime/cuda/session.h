#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tessera/runtime/session.h"

namespace tessera::runtime::cuda {

/// A program for a GPU on the first one there is. Code and weights lie there once for all sessions
/// of a program, each with an arena of its own; inputs are copied there and outputs back. Where no
/// step needs the computer, all are one graph that is launched at once, captured in the first run.
/// Without a GPU, with one that the code is not for, or too little memory: `cuda-missing`,
/// `cuda-architecture`, `cuda-memory`.
Expected<std::unique_ptr<Session>> make_session(std::shared_ptr<const LoadedProgram> program,
                                                const SessionOptions& options);

/// What code for the GPU of this computer is best written for; nothing without one.
struct ThisGpu {
  std::string architecture;  // `sm_90a` or `sm_80`
  int multiprocessors = 0;
};
std::optional<ThisGpu> this_gpu();

}  // namespace tessera::runtime::cuda
