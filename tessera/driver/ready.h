#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "tessera/runtime/session.h"

namespace tessera {

/// A program with memory to run in.
struct Ready {
  std::shared_ptr<const runtime::LoadedProgram> loaded = {};
  std::unique_ptr<runtime::Session> session = {};

  const runtime::Program& program() const { return loaded->program(); }
};

struct ReadyOptions {
  int threads = 1;
  /// Of the program's memory, unless that is a GPU's, and of host steps.
  std::int64_t memory_limit = std::int64_t{4} << 30;
  std::filesystem::path cache = {};         // of code for a GPU; nowhere if empty
  std::int64_t most_rounds = 100'000;       // of loops in host steps
  const std::atomic<bool>* stop = nullptr;  // of host steps
  decltype(runtime::SessionOptions::observe) observe = {};
};

/// Options of a session whose host steps are run by the interpreter.
runtime::SessionOptions session_options(const ReadyOptions& options);
Expected<Ready> ready(runtime::Program program, const ReadyOptions& options);

/// Whether a file is a saved program, by its name.
bool is_saved_program(const std::filesystem::path& path);

}  // namespace tessera
