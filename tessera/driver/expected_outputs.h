#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/driver/golden.h"
#include "tessera/support/datum.h"

namespace tessera {

/// Expected outputs of a run, and the inputs that are stored beside them.
struct ExpectedOutputs {
  Golden golden;
  std::vector<Datum> inputs = {};
};

/// Model that the expected outputs belong to.
struct ComparedModel {
  std::filesystem::path path;
  std::size_t inputs = 0;
  std::vector<std::string> outputs;
};

/// Reads expected outputs: a golden file (JSON), a folder with NAME.npy for each output, or a
/// folder of ONNX test data with output_0.pb, … and optional input_0.pb, ….
Expected<ExpectedOutputs> read_expected_outputs(const std::filesystem::path& path,
                                                const ComparedModel& model);

}  // namespace tessera
