#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/prove/sweep.h"
#include "tessera/support/expected.h"

namespace tessera {

/// Whether two model files compute the same function; the names of outputs are those of the files.
Expected<prove::SweepResult> prove_models(const std::filesystem::path& source,
                                          const std::filesystem::path& target,
                                          prove::SweepOptions options);

/// Writes the inputs of a refutation as .npy files, for `tessera run --input`; gives their paths.
Expected<std::vector<std::filesystem::path>> save_counterexample(
    const prove::SweepResult& result, const std::filesystem::path& folder);

}  // namespace tessera
