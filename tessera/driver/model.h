#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/onnx/import.h"
#include "tessera/support/expected.h"

namespace tessera {

/// Model: a graph with the output names and metadata of its file.
struct Model {
  Graph graph;
  std::vector<std::string> output_names;
  onnx::ModelInfo info = {};
  std::int64_t file_bytes = 0;  // size of the model file and its external weights
};

/// Reads an ONNX file, or the text form if the extension is `.tessera` or `.txt`.
Expected<Model> load_model(const std::filesystem::path& path);

/// Writes a model in the format of the file extension.
Expected<Done> save_model(const Model& model, const std::filesystem::path& path);

/// Whether a file has an extension of the text form.
bool is_text_form(const std::filesystem::path& path);

}  // namespace tessera
