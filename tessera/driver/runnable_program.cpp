#include "tessera/driver/runnable_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/engine/engine.h"

namespace tessera {

runtime::SessionOptions session_options(const ExecutionOptions& options) {
  return {.threads = options.threads,
          .host = engine::interpreter_host({.threads = options.threads,
                                            .memory_limit = options.memory_limit,
                                            .max_iterations = options.max_iterations,
                                            .stop = options.stop}),
          .cache = options.cache,
          .observe = options.observe};
}

Expected<RunnableProgram> make_runnable(runtime::Program program, const ExecutionOptions& options) {
  std::int64_t results = 0;
  for (const runtime::ValueIndex output : program.outputs) {
    results += std::min(program.values[output].bytes, options.memory_limit + 1);
  }
  if (const std::int64_t needed = std::max(program.arena_bytes, results);
      needed > options.memory_limit && !program.is_for_gpu()) {
    return Diagnostic{.id = "memory-limit",
                      .message = fmt::format("the program needs {} bytes", needed),
                      .note = fmt::format("{} bytes are left", options.memory_limit),
                      .help = "allow more with --memory-limit"};
  }
  RunnableProgram runnable;
  TESSERA_TRY(runnable.loaded, runtime::LoadedProgram::load(std::move(program)));
  TESSERA_TRY(runnable.session,
              runtime::Session::create(runnable.loaded, session_options(options)));
  return runnable;
}

bool is_saved_program(const std::filesystem::path& path) {
  return path.extension() == ".tsr";
}

}  // namespace tessera
