#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tessera/driver/compile_model.h"
#include "tessera/driver/runnable_program.h"
#include "tessera/support/expected.h"

namespace tessera {

/// Outcome of one test of ONNX's backend suite.
struct ConformanceResult {
  enum class Outcome {
    Passed,
    Wrong,        // ran with wrong outputs
    Failed,       // ended with a diagnostic or an internal error
    Unsupported,  // not supported, or random and so not comparable
  };

  std::string name;
  Outcome outcome = Outcome::Passed;
  std::string why = {};
  double seconds = 0;  // CPU time of all threads
};

/// Options of conformance().
struct ConformanceOptions {
  enum class Engine { Native, Reference };

  Engine engine = Engine::Native;
  double relative = 1e-3, absolute = 1e-7;  // as ONNX's own runner compares
  CompileModelOptions compile = {};         // for the native engine
  ExecutionOptions run = {};                // threads and limits, for both engines
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

/// Runs ONNX backend tests: every folder below `folder` that holds model.onnx and test_data_set_*.
/// A test without expected outputs fails.
Expected<std::vector<ConformanceResult>> conformance(const std::filesystem::path& folder,
                                                     const ConformanceOptions& options);

}  // namespace tessera
