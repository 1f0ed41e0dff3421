#pragma once

#include <filesystem>
#include <memory>

#include "tessera/interp/interp.h"
#include "tessera/runtime/session.h"

/// Inference engine for saved programs (.tsr), without the compiler: kernels run through runtime/,
/// operators without machine code through the interpreter. tessera.h is the C interface.
namespace tessera::engine {

/// Host callback that runs the graphs of host steps by the interpreter; each is parsed once.
/// Thread-safe.
runtime::Host interpreter_host(const interp::Options& options = {});

/// Loads a saved program for any number of sessions. It contains machine code: open trusted files
/// only (docs/security.md).
Expected<std::shared_ptr<const runtime::LoadedProgram>> open(const std::filesystem::path& file);

/// Creates a session, the memory of one caller; without a host in the options, host steps are
/// interpreted.
Expected<std::unique_ptr<runtime::Session>> make_session(
    std::shared_ptr<const runtime::LoadedProgram> program, runtime::SessionOptions options = {});

}  // namespace tessera::engine
