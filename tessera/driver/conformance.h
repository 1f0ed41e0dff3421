#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tessera/support/expected.h"

namespace tessera {

/// What became of one test of ONNX's backend suite.
struct ConformanceResult {
  enum class Outcome { Passed, Failed, Unsupported };

  std::string name;
  Outcome outcome = Outcome::Passed;
  std::string why = {};
};

struct ConformanceOptions {
  double relative = 1e-3, absolute = 1e-7;  // as ONNX's own runner compares
  int threads = 1;
  std::int64_t memory_limit = std::int64_t{4} << 30;
  std::int64_t most_rounds = 100'000;  // of the loops of a test
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

/// Runs every folder below `folder` that holds model.onnx and test_data_set_*. A wrong answer or an
/// error while running is a failure; what the importer says it does not read, and what is random by
/// nature, is unsupported.
Expected<std::vector<ConformanceResult>> conformance(const std::filesystem::path& folder,
                                                     const ConformanceOptions& options);

}  // namespace tessera
