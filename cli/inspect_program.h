#pragma once

#include <filesystem>

#include "cli/context.h"

namespace tessera::cli {

/// What is in a saved program: what it takes and gives, memory, steps; with `text`, each step.
void inspect_program(const std::filesystem::path& file, bool text, Context& context);

}  // namespace tessera::cli
