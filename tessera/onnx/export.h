#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/onnx/import.h"

namespace tessera::onnx {

struct ExportOptions {
  /// What the file says about itself; its opset is a lower bound.
  ModelInfo info = {};
  /// What outputs are called that cannot have the name of their value, by position.
  std::vector<std::string> output_names = {};
  /// Puts large weights into a file beside the model.
  bool external = false;
};

/// Writes a graph as an ONNX model. Operators keep their ONNX names, in the smallest opset from 17
/// on that has them all; composites that ONNX does not have are written as what they are made of.
/// Values and nodes keep their names, weights are written from where they lie. An operator that
/// ONNX cannot express is a diagnostic.
Expected<Done> export_model(const Graph& graph, const std::filesystem::path& path,
                            const ExportOptions& options = {});

}  // namespace tessera::onnx
