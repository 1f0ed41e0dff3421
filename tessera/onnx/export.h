#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/onnx/import.h"

namespace tessera::onnx {

/// Options of export_model.
struct ExportOptions {
  /// Metadata of the file; its opset is a lower bound.
  ModelInfo info = {};
  /// Names of outputs that cannot have the name of their value, by position.
  std::vector<std::string> output_names = {};
  /// Stores large weights in a file beside the model (external data).
  bool external = false;
};

/// Exports a graph as an ONNX model. Operators keep their ONNX names, in the smallest opset from 17
/// on that has them all; operators with a body that ONNX does not have are expanded. Values and
/// nodes keep their names; weights are written without copying them in memory. An operator that
/// ONNX cannot express is a diagnostic.
Expected<Done> export_model(const Graph& graph, const std::filesystem::path& path,
                            const ExportOptions& options = {});

}  // namespace tessera::onnx
