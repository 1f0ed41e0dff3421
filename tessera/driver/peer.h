#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/support/expected.h"
#include "tessera/support/tensor.h"

namespace tessera {

struct PeerOptions {
  std::filesystem::path model = {};  // an ONNX file
  std::vector<std::string> input_names = {};
  int threads = 1;
  bool bf16 = false;  // products of bf16, where ONNX Runtime has them
  std::string python = "python3";
};

/// ONNX Runtime, as PyPI has it, in a process of its own that is stopped except while it works for
/// us. Of its settings (optimization off, basic or all; spinning or not) it has those that are
/// fastest for the model.
class Peer {
 public:
  /// `peer-missing` where there is no Python or no onnxruntime in it, `peer-failed` where it does
  /// not run the model.
  static Expected<std::unique_ptr<Peer>> start(const PeerOptions& options,
                                               std::span<const Tensor> inputs);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& version() const { return version_; }
  const std::string& settings() const { return settings_; }

  /// Milliseconds of each of so many runs.
  Expected<std::vector<double>> time(int runs);
  /// What it answers.
  Expected<std::vector<Tensor>> outputs();

 private:
  Peer() = default;
  Expected<std::string> ask(const std::string& what);
  Expected<std::string> answer();

  int process_ = -1, socket_ = -1;
  std::filesystem::path folder_;  // of inputs and outputs
  std::string unread_, version_, settings_;
};

}  // namespace tessera
