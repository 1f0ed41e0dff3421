#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/driver/golden.h"
#include "tessera/support/datum.h"

namespace tessera {

/// What a run is compared with, and the inputs that are stored beside it.
struct ExpectedOutputs {
  Golden golden;
  std::vector<Datum> inputs = {};
};

/// The model whose outputs are stored.
struct ComparedModel {
  std::filesystem::path path;
  std::size_t inputs = 0;
  std::vector<std::string> outputs;
};

/// Reads a golden file (JSON); a folder with NAME.npy for each output; or a folder of ONNX's test
/// data, with output_0.pb, … and perhaps input_0.pb, ….
Expected<ExpectedOutputs> read_expected_outputs(const std::filesystem::path& path,
                                                const ComparedModel& model);

}  // namespace tessera
