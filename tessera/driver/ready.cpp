#include "tessera/driver/ready.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/engine/engine.h"

namespace tessera {

runtime::SessionOptions session_options(const ReadyOptions& options) {
  return {.threads = options.threads,
          .host = engine::interpreter_host({.threads = options.threads,
                                            .memory_limit = options.memory_limit,
                                            .most_rounds = options.most_rounds,
                                            .stop = options.stop}),
          .cache = options.cache,
          .observe = options.observe};
}

Expected<Ready> ready(runtime::Program program, const ReadyOptions& options) {
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
  Ready made;
  TESSERA_TRY(made.loaded, runtime::LoadedProgram::load(std::move(program)));
  TESSERA_TRY(made.session, runtime::Session::create(made.loaded, session_options(options)));
  return made;
}

bool is_saved_program(const std::filesystem::path& path) {
  return path.extension() == ".tsr";
}

}  // namespace tessera
