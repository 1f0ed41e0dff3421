#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "tessera/runtime/session.h"

namespace tessera {

/// Loaded program with a session to run it.
struct RunnableProgram {
  std::shared_ptr<const runtime::LoadedProgram> loaded = {};
  std::unique_ptr<runtime::Session> session = {};

  const runtime::Program& program() const { return loaded->program(); }
};

/// Options for running a program.
struct ExecutionOptions {
  int threads = 1;
  /// Limit on host memory of the program and of host steps, in bytes.
  std::int64_t memory_limit = std::int64_t{4} << 30;
  std::filesystem::path cache = {};         // cache of GPU code; none if empty
  std::int64_t max_iterations = 100'000;    // limit on loop iterations in host steps
  const std::atomic<bool>* stop = nullptr;  // cancellation flag of host steps
  decltype(runtime::SessionOptions::observe) observe = {};
};

/// Session options whose host steps are run by the interpreter.
runtime::SessionOptions session_options(const ExecutionOptions& options);
/// Loads a program and creates a session for it.
Expected<RunnableProgram> make_runnable(runtime::Program program, const ExecutionOptions& options);

/// Whether a file is a saved program, by its extension.
bool is_saved_program(const std::filesystem::path& path);

}  // namespace tessera
