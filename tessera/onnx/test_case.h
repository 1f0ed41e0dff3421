#pragma once

#include <filesystem>
#include <vector>

#include "tessera/onnx/model_file.h"
#include "tessera/support/datum.h"

namespace tessera::onnx {

/// What a model is given and what it has to answer, as ONNX's own tests store it: files
/// input_0.pb, output_0.pb, … in a folder beside the model.
struct TestCase {
  std::vector<Datum> inputs, outputs;
};

Expected<TestCase> read_test_case(const std::filesystem::path& folder, const ModelFile& model);
/// The same of a model that takes and makes tensors alone, so many of them.
Expected<TestCase> read_test_case(const std::filesystem::path& folder, std::size_t inputs,
                                  std::size_t outputs);
/// Writes the files; the folder is made if need be.
Expected<Done> write_test_case(const TestCase& test, const std::filesystem::path& folder);

}  // namespace tessera::onnx
