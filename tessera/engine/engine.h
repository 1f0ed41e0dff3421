#pragma once

#include <filesystem>
#include <memory>

#include "tessera/interp/interp.h"
#include "tessera/runtime/session.h"

/// Runs saved programs without a compiler: what has machine code through runtime/, what has none
/// through the interpreter. tessera.h is the same for C.
namespace tessera::engine {

/// A host that reads the graph of a step once and runs it by the definitions of its operators. Safe
/// to be asked by several threads.
runtime::Host interpreter_host(const interp::Options& options = {});

/// A saved program (.tsr), ready for any number of sessions. It is code: open only what you trust
/// (docs/security.md).
Expected<std::shared_ptr<const runtime::LoadedProgram>> open(const std::filesystem::path& file);

/// One caller's memory for a program; where the options name no host, it is the interpreter's.
Expected<std::unique_ptr<runtime::Session>> make_session(
    std::shared_ptr<const runtime::LoadedProgram> program, runtime::SessionOptions options = {});

}  // namespace tessera::engine
