#pragma once

#include <filesystem>
#include <string>

#include "tessera/runtime/program.h"
#include "tessera/support/expected.h"

namespace tessera::runtime {

/// Writes a program as one file (.tsr), all of it or nothing.
Expected<Done> save(const Program& program, const std::filesystem::path& file);

/// Reads one. The weights stay in the file, mapped; all else is read and compared with its
/// checksum. A program is code: load only what you trust (docs/security.md).
Expected<Program> load(const std::filesystem::path& file);

/// As load, and compares the weights with their checksum too.
Expected<Done> verify(const std::filesystem::path& file);

/// The same for a file already in memory; `name` is for diagnostics.
Expected<Program> parse_program(const Bytes& file, const std::string& name);

}  // namespace tessera::runtime
