#pragma once

#include <filesystem>
#include <vector>

#include "tessera/onnx/model_file.h"
#include "tessera/support/datum.h"

namespace tessera::onnx {

/// Test case of a model, as ONNX's own tests store it: files input_0.pb, output_0.pb, … in a folder
/// beside the model.
struct TestCase {
  std::vector<Datum> inputs, outputs;
};

Expected<TestCase> read_test_case(const std::filesystem::path& folder, const ModelFile& model);
/// Reads the test case of a model whose inputs and outputs are all tensors.
Expected<TestCase> read_test_case(const std::filesystem::path& folder, std::size_t inputs,
                                  std::size_t outputs);
/// Writes a test case; creates the folder if necessary.
Expected<Done> write_test_case(const TestCase& test, const std::filesystem::path& folder);

}  // namespace tessera::onnx
