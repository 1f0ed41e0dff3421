#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

namespace tessera::testing {

/// The assembler of a CUDA toolkit: the one that TESSERA_PTXAS names, or that is on the path.
inline std::optional<std::filesystem::path> ptxas() {
  if (const char* named = std::getenv("TESSERA_PTXAS")) return named;
  std::istringstream folders(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path file = std::filesystem::path(folder) / "ptxas";
    if (std::filesystem::exists(file)) return file;
  }
  return std::nullopt;
}

}  // namespace tessera::testing
