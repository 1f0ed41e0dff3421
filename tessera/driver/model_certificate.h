#pragma once

#include <filesystem>
#include <string>

#include "tessera/driver/prove.h"

namespace tessera {

/// Proves that two models are equal, and writes a certificate where they are: what the files are,
/// the assumptions, and the proof of each pair of windows, as a certificate of its own.
Expected<prove::SweepResult> prove_models_with_certificate(
    const std::filesystem::path& source, const std::filesystem::path& target,
    prove::SweepOptions options, const std::filesystem::path& certificate);

bool is_model_certificate(std::string_view text);

/// The files that a certificate of models is about, where they are not beside it under the names
/// that it has for them.
struct ModelFiles {
  std::filesystem::path source = {}, target = {};
};

/// Reads both models again, pairs their values, and replays the proof of each window that is not
/// equal by congruence; searches for none. Gives the claim in words.
Expected<std::string> check_model_certificate(const std::filesystem::path& path,
                                              const ModelFiles& files);

}  // namespace tessera
