#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/onnx/model_file.h"

namespace tessera::onnx {

/// What a model file says about itself.
struct ModelInfo {
  std::int64_t ir_version = 8;
  std::map<std::string, std::int64_t> opsets = {};  // by domain; that of ONNX itself is empty
  std::string producer_name = {};
  std::string producer_version = {};
  std::string domain = {};
  std::int64_t model_version = 0;
  std::string doc = {};
  std::map<std::string, std::string> metadata = {};
};

/// A model, read. Inputs, outputs, values and nodes keep their names.
struct Imported {
  Graph graph;
  ModelInfo info;
  /// What the file calls the outputs; one that is also an input has another name in the graph.
  std::vector<std::string> output_names;
};

struct ImportOptions {
  /// Keeps inputs that have a default as inputs. Otherwise they are constants.
  bool keep_defaults = false;
};

/// The graph of a model of opset 1 to 28: operators by the table in rows.cpp, functions expanded,
/// If, Loop and Scan as closed subgraphs, weights where they lie in the file. What Tessera does not
/// read is a diagnostic that names the node.
Expected<Imported> import_model(const ModelFile& file, const ImportOptions& options = {});

}  // namespace tessera::onnx
