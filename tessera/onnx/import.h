#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/onnx/model_file.h"

namespace tessera::onnx {

/// Metadata of a model file.
struct ModelInfo {
  std::int64_t ir_version = 8;
  std::map<std::string, std::int64_t> opsets = {};  // by domain; empty for ai.onnx
  std::string producer_name = {};
  std::string producer_version = {};
  std::string domain = {};
  std::int64_t model_version = 0;
  std::string doc = {};
  std::map<std::string, std::string> metadata = {};
  std::vector<std::string> defaulted_inputs = {};  // inputs with an initializer, read as constants
};

/// Imported model. Inputs, outputs, values and nodes keep their names.
struct ImportedModel {
  Graph graph;
  ModelInfo info;
  /// Names of the outputs in the file; an output that is also an input has another name in the
  /// graph.
  std::vector<std::string> output_names;
};

/// Options of import_model.
struct ImportOptions {
  /// Keeps inputs that have an initializer as inputs. Otherwise they are constants.
  bool keep_defaults = false;
};

/// Imports a model of opset 1 to 28: operators by the table in operator_table.cpp, functions
/// expanded, If, Loop and Scan as closed subgraphs, weights mapped from the file. Unsupported
/// content is a diagnostic that names the node.
Expected<ImportedModel> import_model(const ModelFile& file, const ImportOptions& options = {});

}  // namespace tessera::onnx
