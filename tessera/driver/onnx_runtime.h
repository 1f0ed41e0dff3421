#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/support/tensor.h"

namespace tessera {

/// Options of an ONNX Runtime process.
struct OnnxRuntimeOptions {
  std::filesystem::path model = {};  // an ONNX file
  std::vector<std::string> input_names = {};
  int threads = 1;
  bool bf16 = false;  // bf16 matmuls, where ONNX Runtime supports them
  std::string python = "python3";
};

/// ONNX Runtime (from PyPI) in a separate process as a baseline for benchmarks; the process is
/// suspended except while it is timed. Of its settings (optimization off, basic or all; spinning or
/// not) the fastest for the model are used.
class OnnxRuntimeProcess {
 public:
  /// Starts the process: `peer-missing` without Python or onnxruntime, `peer-failed` if it does not
  /// run the model.
  static Expected<std::unique_ptr<OnnxRuntimeProcess>> start(const OnnxRuntimeOptions& options,
                                                             std::span<const Tensor> inputs);
  ~OnnxRuntimeProcess();
  OnnxRuntimeProcess(const OnnxRuntimeProcess&) = delete;
  OnnxRuntimeProcess& operator=(const OnnxRuntimeProcess&) = delete;

  const std::string& version() const { return version_; }
  const std::string& settings() const { return settings_; }

  /// Times of this many runs, in milliseconds.
  Expected<std::vector<double>> time(int runs);
  /// Outputs of a run.
  Expected<std::vector<Tensor>> outputs();

 private:
  OnnxRuntimeProcess() = default;
  Expected<std::string> ask(const std::string& what);
  Expected<std::string> answer();

  int process_ = -1, socket_ = -1;
  std::filesystem::path folder_;  // temporary folder of inputs and outputs
  std::string unread_, version_, settings_;
};

}  // namespace tessera
