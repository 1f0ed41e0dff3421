#pragma once

#include <filesystem>

#include "cli/context.h"

namespace tessera::cli {

/// Prints a saved program: inputs, outputs, memory and number of steps; with `text`, each step.
void inspect_program(const std::filesystem::path& file, bool text, Context& context);

}  // namespace tessera::cli
