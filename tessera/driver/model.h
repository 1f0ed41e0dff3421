#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tessera/ir/graph.h"
#include "tessera/onnx/import.h"
#include "tessera/support/expected.h"

namespace tessera {

/// A graph, what its file called the outputs, and what the file said about itself.
struct Model {
  Graph graph;
  std::vector<std::string> output_names;
  onnx::ModelInfo info = {};
  std::int64_t file_bytes = 0;  // the model and the weights beside it
};

/// Reads an ONNX file, or our text form where the name ends in `.tessera` or `.txt`.
Expected<Model> load_model(const std::filesystem::path& path);

/// Writes a model in the form that the name asks for.
Expected<Done> save_model(const Model& model, const std::filesystem::path& path);

/// Whether a file is taken for the text form.
bool is_text_form(const std::filesystem::path& path);

}  // namespace tessera
