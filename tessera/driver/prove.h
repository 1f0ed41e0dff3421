#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/prove/sweep.h"
#include "tessera/support/expected.h"

namespace tessera {

/// Equivalence check of two model files; outputs are matched by the names in the files.
Expected<prove::SweepResult> prove_models(const std::filesystem::path& source,
                                          const std::filesystem::path& target,
                                          prove::SweepOptions options);

/// Writes the inputs of a counterexample as .npy files, for `tessera run --input`; returns their
/// paths.
Expected<std::vector<std::filesystem::path>> save_counterexample(
    const prove::SweepResult& result, const std::filesystem::path& folder);

}  // namespace tessera
