#pragma once

#include <filesystem>
#include <string>

#include "tessera/runtime/program.h"
#include "tessera/support/expected.h"

namespace tessera::runtime {

/// Saves a program as one file (.tsr), atomically.
Expected<Done> save(const Program& program, const std::filesystem::path& path);

/// Content of the file that save() writes.
Expected<Bytes> file_bytes(const Program& program);

/// Loads a program. The weights stay in the file, mapped; all else is read and verified by its
/// checksum. A program is code: load only what you trust (docs/security.md).
Expected<Program> load(const std::filesystem::path& file);

/// Loads a program and verifies the checksum of the weights too.
Expected<Done> verify(const std::filesystem::path& file);

/// Parses a program file in memory; `name` is for diagnostics.
Expected<Program> parse_program(const Bytes& file, const std::string& name);

}  // namespace tessera::runtime
