#pragma once

#include <filesystem>
#include <string>

#include "tessera/driver/prove.h"

namespace tessera {

/// Proves two models equal and, on success, writes a certificate: hashes of the files, assumptions,
/// and a certificate for each pair of windows.
Expected<prove::SweepResult> prove_models_with_certificate(
    const std::filesystem::path& source, const std::filesystem::path& target,
    prove::SweepOptions options, const std::filesystem::path& certificate);

bool is_model_certificate(std::string_view text);

/// Paths of the model files, if they are not beside the certificate under their recorded names.
struct ModelFiles {
  std::filesystem::path source = {}, target = {};
};

/// Checks a certificate of models without any search: reads both models, pairs their values, and
/// replays the proof of each window that is not equal by congruence. Returns the claim in words.
Expected<std::string> check_model_certificate(const std::filesystem::path& path,
                                              const ModelFiles& files);

/// What the operators of both models, and of the lemmas of their certificate, mean.
Expected<prove::CallMeanings> meanings_of_models(const std::filesystem::path& certificate,
                                                 const ModelFiles& files);

}  // namespace tessera
